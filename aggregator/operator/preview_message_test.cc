// SPDX-License-Identifier: Apache-2.0
// A preview's predictions from whatever numbers its workers counted.
#include "aggregator/operator/preview_message.h"

#include <gtest/gtest.h>

#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

TEST(PreviewMessageTest, SumsDoNotRestart) {
  CaptureRecord record;
  record.armed_realtime_ns = 1'700'000'000 * kNsPerSecond;
  record.stopped_realtime_ns = record.armed_realtime_ns + kNsPerSecond;
  record.spec.timing.duration_ns = 10 * kNsPerSecond;
  for (uint32_t pid = 1; pid <= 2; ++pid) {
    record.workers.push_back({.worker = {.instance_id = "i-a", .boot_id = "b", .pid = pid}});
    record.workers.back().events_read = UINT64_MAX - 5;
    record.workers.back().bytes_read = UINT64_MAX - 5;
  }
  const v1::CapturePreview preview = ToPreview(record, {});
  EXPECT_GE(preview.events_per_second(), 1.8e19);
  EXPECT_GE(preview.bytes_per_second(), 1.8e19);
  EXPECT_GE(preview.most_bytes_per_second(), 1.8e19);
  EXPECT_EQ(preview.events(), UINT64_MAX);
}

}  // namespace
}  // namespace neurontrace
