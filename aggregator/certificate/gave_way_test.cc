// SPDX-License-Identifier: Apache-2.0
// What a certificate says of the time in which other captures had a continuous capture's workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/certificate/make_certificate.h"
#include "base/time_units.h"
#include "trace/given_way.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StreamRecord Stream(uint32_t number, uint64_t events) {
  StreamRecord stream;
  stream.number = number;
  stream.identity = {.agent_id = "agent-a",
                     .worker = {.instance_id = "i-a", .boot_id = "b", .pid = 1},
                     .kind = StreamKind::kNeuronCore,
                     .nc_idx = number};
  stream.events = stream.captured = events;
  stream.ended = true;
  return stream;
}

// A capture that gave way to another one has a hole, and says when: no loss, and not all there was.
TEST(GaveWay, TheTimeThatAnotherCaptureHadIsSaidAndNotClaimed) {
  CaptureRecord record;
  record.state = CaptureState::kComplete;
  record.started_realtime_ns = 1'000'000'000;
  record.stopped_realtime_ns = record.started_realtime_ns + 1'000'000'000;
  record.agents = {{.agent_id = "agent-a", .instance_id = "i-a", .finished = true}};
  record.workers = {{.worker = {.instance_id = "i-a", .boot_id = "b", .pid = 1},
                     .state = CaptureWorkerState::kComplete,
                     .events_read = 20,
                     .streams = 2}};
  std::vector<StreamRecord> streams = {Stream(1, 20), Stream(2, 0)};
  const auto make = [&record, &streams] {
    return MakeCertificate({.record = record, .streams = streams, .workers = {}});
  };
  const std::string words = "capture 01K had the worker";
  StreamRecord& stream = streams[1];
  const uint64_t at_ns = 1'763'700'000 * kNsPerSecond;
  stream.losses = {GaveWayFromTo(at_ns + kNsPerSecond, at_ns + 9 * kNsPerSecond, words)};
  stream.gaps = {GaveWayFromTo(at_ns + kNsPerSecond, at_ns + 3 * kNsPerSecond, words),
                 GaveWayFromTo(at_ns + 7 * kNsPerSecond, at_ns + 9 * kNsPerSecond, words)};
  Certificate certificate = make();
  EXPECT_TRUE(certificate.complete) << certificate.verdict;
  EXPECT_EQ(certificate.verdict,
            "complete but for the time that other captures had 1 worker (up to 4.0 s): every event "
            "that was recorded is stored");
  EXPECT_THAT(certificate.account.losses, IsEmpty());
  EXPECT_EQ(certificate.workers[0].gaps, 0u);
  EXPECT_THAT(certificate.workers[0].longest_gaps, IsEmpty());
  EXPECT_THAT(
      certificate.notes,
      ElementsAre("i-a pid 1 did not record from 2025-11-21 04:40:01Z to 2025-11-21 "
                  "04:40:03Z (2.0 s): " +
                  words + "; from 2025-11-21 04:40:07Z to 2025-11-21 04:40:09Z (2.0 s): " + words));

  // While it goes on, and where something is lost besides.
  record.state = CaptureState::kRecording;
  EXPECT_THAT(make().verdict, HasSubstr("; but for the time that other captures had"));
  record.state = CaptureState::kIncomplete;
  stream.losses.push_back({.place = LossPlace::kTapBuffer, .events = 1});
  EXPECT_THAT(make().verdict, HasSubstr("; but for the time that other captures had"));

  // Before what is kept nothing is left to be said of it.
  stream.losses.push_back({.place = LossPlace::kRetention,
                           .reason = LossReason::kExpired,
                           .events = 1,
                           .last_timestamp_ns = at_ns + 4 * kNsPerSecond});
  EXPECT_EQ(make().workers[0].gave_way.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
