// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/collective_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "aggregator/align/device/device_event.h"
#include "lib/trace/clock_limits.h"
#include "lib/trace/event.h"

namespace neurontrace {
namespace {

using ::testing::SizeIs;

TEST(CollectiveReaderTest, PartsThatEndedDoNotCrowdOutALongOne) {
  const auto event = [](Phase phase, uint64_t tracking_id) {
    return DeviceEvent{.type = DeviceEventType::kCollective,
                       .phase = phase,
                       .tracking_id = tracking_id,
                       .exec_id = tracking_id,
                       .operation = 1};
  };
  std::vector<DeviceEvent> events{event(Phase::kStart, 1)};
  for (uint64_t i = 2; i <= 2 * limits::kDeviceSpansOpenMax; ++i) {
    events.push_back(event(Phase::kStart, i));
    events.push_back(event(Phase::kStop, i));
  }
  events.push_back(event(Phase::kStop, 1));
  CollectiveReader reader(1, events.size());
  reader.Add(events);
  const std::vector<CollectivePart> parts = reader.Take();
  ASSERT_THAT(parts, SizeIs(2 * limits::kDeviceSpansOpenMax));
  EXPECT_EQ(parts.back().exec_id, 1u);
}

TEST(CollectiveReaderTest, KeepsTheSameExecutionsOfAllCoresWhereThereAreTooMany) {
  CollectiveReader reader(1, 100);
  std::vector<DeviceEvent> events;
  for (uint64_t i = 1; i <= 1'000; ++i) {
    events.push_back({.type = DeviceEventType::kCollective,
                      .phase = Phase::kStart,
                      .tracking_id = i,
                      .exec_id = i,
                      .operation = 0});
    events.push_back(
        {.type = DeviceEventType::kCollective, .phase = Phase::kStop, .tracking_id = i});
  }
  reader.Add(events);
  EXPECT_EQ(reader.stride(), 16u);
  const auto parts = reader.Take();
  EXPECT_THAT(parts, SizeIs(62));
  for (const CollectivePart& part : parts) EXPECT_EQ(part.exec_id % 16, 0u);
}

}  // namespace
}  // namespace neurontrace
