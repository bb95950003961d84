// SPDX-License-Identifier: Apache-2.0
// Goal: executions, their brackets and sync points are found in a ring's events whatever is missing
// among them, within limits. Method: events by hand.
#include "aggregator/align/device/device_evidence_reader.h"

#include <gtest/gtest.h>

#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kHost = 1'755'115'507'555'000'000;

// The events of one core, numbered as they come.
class Ring {
 public:
  DeviceEvent& Add(DeviceEventType type, Phase phase, uint64_t tracking_id, uint64_t host_us) {
    events.push_back({.type = type,
                      .phase = phase,
                      .sequence = next_++,
                      .tracking_id = tracking_id,
                      .timestamp_ns = kHost + host_us * 1'000});
    return events.back();
  }
  void Start(DeviceEventType type, uint64_t tracking_id, uint64_t host_us, uint64_t exec_id) {
    Add(type, Phase::kStart, tracking_id, host_us).exec_id = exec_id;
  }
  void Stop(DeviceEventType type, uint64_t tracking_id, uint64_t host_us) {
    Add(type, Phase::kStop, tracking_id, host_us);
  }
  void StartRun(uint64_t tracking_id, uint64_t exec_id, uint64_t core, uint64_t counter) {
    DeviceEvent& event = Add(DeviceEventType::kRunning, Phase::kStart, tracking_id, 0);
    event.exec_id = exec_id;
    event.device_core_idx = core;
    event.nc_timestamp_ns = counter;
  }
  void StopRun(uint64_t tracking_id, uint64_t counter) {
    Add(DeviceEventType::kRunning, Phase::kStop, tracking_id, 0).nc_timestamp_ns = counter;
  }
  void SyncPoint(uint64_t exec_id, uint64_t counter, uint64_t read_us, uint64_t recorded_us) {
    DeviceEvent& event =
        Add(DeviceEventType::kSyncPoint, Phase::kInstant, 90'000 + exec_id, recorded_us);
    event.exec_id = exec_id;
    event.nc_timestamp_ns = counter;
    event.cpu_timestamp_ns = kHost + read_us * 1'000;
  }
  // One execution of two physical cores, 500 us of the host's time.
  void Execution(uint64_t exec_id) {
    const uint64_t us = exec_id * 1'000;
    const uint64_t track = exec_id * 10;
    Start(DeviceEventType::kPrepare, track, us, exec_id);
    Stop(DeviceEventType::kPrepare, track, us + 20);
    Start(DeviceEventType::kCore, track + 1, us + 21, exec_id);
    StartRun(track + 2, exec_id, 12, 144'000'000'000 + us * 1'000);
    StartRun(track + 3, exec_id, 13, 88'000'000'000 + us * 1'000);
    Start(DeviceEventType::kWait, track + 4, us + 200, exec_id);
    StopRun(track + 2, 144'000'000'000 + us * 1'000 + 300'000);
    StopRun(track + 3, 88'000'000'000 + us * 1'000 + 300'000);
    SyncPoint(exec_id, 144'000'000'000 + us * 1'000 + 310'000, us + 400, us + 410);
    Stop(DeviceEventType::kWait, track + 4, us + 450);
    Stop(DeviceEventType::kCore, track + 1, us + 460);
    Start(DeviceEventType::kFinish, track + 5, us + 470, exec_id);
    Stop(DeviceEventType::kFinish, track + 5, us + 500);
  }

  std::vector<DeviceEvent> events;

 private:
  uint64_t next_ = 1'000;
};

TEST(DeviceEvidenceReaderTest, MatchesExecutionOfTwoCoresWithSyncPoint) {
  Ring ring;
  ring.Execution(7);
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  ASSERT_EQ(found.cores.size(), 2u);
  EXPECT_EQ(found.cores[0].device_core_idx, 12u);
  EXPECT_EQ(found.cores[1].device_core_idx, 13u);
  ASSERT_EQ(found.cores[0].evidence.executions.size(), 1u);
  EXPECT_EQ(found.cores[0].evidence.executions[0],
            (DeviceExecution{.exec_id = 7,
                             .first_sequence = 1'003,
                             .last_sequence = 1'006,
                             .host_before_ns = kHost + 7'020'000,
                             .device_start_ns = 144'007'000'000,
                             .device_end_ns = 144'007'300'000,
                             .host_after_ns = kHost + 7'450'000}));
  EXPECT_EQ(found.cores[1].evidence.executions[0].device_end_ns, 88'007'300'000u);
  ASSERT_EQ(found.cores[0].evidence.sync_points.size(), 1u);
  EXPECT_EQ(found.cores[0].evidence.sync_points[0],
            (DeviceSyncPoint{.exec_id = 7,
                             .sequence = 1'008,
                             .device_ns = 144'007'310'000,
                             .host_ns = kHost + 7'400'000,
                             .recorded_ns = kHost + 7'410'000}));
  EXPECT_TRUE(found.cores[1].evidence.sync_points.empty());
  EXPECT_EQ(found.ignored, DeviceEventsIgnored{});
}

TEST(DeviceEvidenceReaderTest, TakesWhatIsThere) {
  Ring ring;
  ring.StopRun(1, 5'000);  // its start was overwritten
  ring.Start(DeviceEventType::kCore, 2, 30, 8);
  ring.StartRun(3, 8, 12, 6'000);
  ring.Start(DeviceEventType::kFinish, 4, 90, 8);
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  ASSERT_EQ(found.cores.size(), 1u);
  ASSERT_EQ(found.cores[0].evidence.executions.size(), 1u);
  const DeviceExecution& execution = found.cores[0].evidence.executions[0];
  EXPECT_EQ(execution.host_before_ns, kHost + 30'000);
  EXPECT_EQ(execution.host_after_ns, kHost + 90'000);
  EXPECT_EQ(execution.device_end_ns, std::nullopt);
  EXPECT_EQ(found.ignored.stops_alone, 1u);
}

TEST(DeviceEvidenceReaderTest, WaitOfOtherExecutionIsNoBracket) {
  Ring ring;
  ring.Execution(7);
  ring.Execution(8);
  // As if the wait of 8 had been written down as 7's, and the other way round.
  for (DeviceEvent& event : ring.events) {
    if (event.type != DeviceEventType::kWait || !event.exec_id) continue;
    event.exec_id = 15 - *event.exec_id;
  }
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  const DeviceEvidence& evidence = found.cores[0].evidence;
  ASSERT_EQ(evidence.executions.size(), 2u);
  EXPECT_EQ(evidence.executions[0].host_after_ns, kHost + 7'470'000) << "kbl_exec_post instead";
  EXPECT_EQ(evidence.executions[1].host_after_ns, kHost + 8'470'000);
  EXPECT_EQ(found.ignored.inconsistent, 2u);
}

TEST(DeviceEvidenceReaderTest, ANumberThatComesAgainIsAnotherExecution) {
  Ring ring;
  ring.Execution(7);
  ring.Execution(7);
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  ASSERT_EQ(found.cores[0].evidence.executions.size(), 2u);
  EXPECT_EQ(found.cores[0].evidence.executions[1].first_sequence, 1'016u);
}

TEST(DeviceEvidenceReaderTest, CountsUnusableEvidence) {
  Ring ring;
  ring.Add(DeviceEventType::kWait, Phase::kStart, 1, 10);         // without exec_id
  ring.Add(DeviceEventType::kRunning, Phase::kStart, 2, 10);      // without a counter
  ring.Add(DeviceEventType::kSyncPoint, Phase::kInstant, 3, 10);  // without either
  ring.Add(DeviceEventType::kDevice, Phase::kStart, 4, 10);       // says nothing of clocks
  for (uint64_t core = 0; core <= limits::kDeviceCoresMax; ++core) ring.StartRun(5, 1, core, 9);
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  EXPECT_EQ(found.ignored.without_execution, 1u);
  EXPECT_EQ(found.ignored.without_counter, 2u);
  EXPECT_EQ(found.ignored.cores_beyond, 1u);
  EXPECT_EQ(found.cores.size(), limits::kDeviceCoresMax);
}

TEST(DeviceEvidenceReaderTest, ASyncPointThatMayBeOfEitherCoreIsOfNone) {
  Ring ring;
  ring.StartRun(1, 1, 12, 1'000'000);
  ring.StartRun(2, 1, 13, 1'000'900);
  ring.SyncPoint(1, 1'000'400, 50, 60);
  const DeviceExtraction found = ExtractDeviceEvidence(ring.events);
  EXPECT_EQ(found.ignored.cores_unknown, 1u);
  EXPECT_TRUE(found.cores[0].evidence.sync_points.empty());
}

TEST(DeviceEvidenceReaderTest, SpansThatStoppedDoNotCrowdOutALongOne) {
  Ring ring;
  ring.StartRun(1, 7, 12, 144'000'000'000);
  for (uint64_t i = 0; i <= 2 * limits::kDeviceSpansOpenMax; ++i) {
    ring.Start(DeviceEventType::kWait, 10 + i, i, 7);
    ring.Stop(DeviceEventType::kWait, 10 + i, i + 1);
  }
  ring.StopRun(1, 144'000'900'000);
  const DeviceExtraction extraction = ExtractDeviceEvidence(ring.events);
  EXPECT_EQ(extraction.ignored, DeviceEventsIgnored());
  ASSERT_EQ(extraction.cores.size(), 1u);
  EXPECT_EQ(extraction.cores[0].evidence.executions.at(0).device_end_ns, 144'000'900'000u);
}

TEST(DeviceEvidenceReaderTest, ForgetsOldestOpenSpan) {
  Ring ring;
  ring.Start(DeviceEventType::kWait, 1, 0, 7);
  ring.Start(DeviceEventType::kWait, 2, 0, 7);
  ring.Start(DeviceEventType::kWait, 1, 0, 7);  // the same id again: now the later one
  for (uint64_t i = 1; i < limits::kDeviceSpansOpenMax; ++i) {
    ring.Start(DeviceEventType::kWait, 2 + i, i, 7);
  }
  ring.Stop(DeviceEventType::kWait, 1, 9'000);
  EXPECT_EQ(ExtractDeviceEvidence(ring.events).ignored, DeviceEventsIgnored());
  ring.Stop(DeviceEventType::kWait, 2, 9'000);
  EXPECT_EQ(ExtractDeviceEvidence(ring.events).ignored, (DeviceEventsIgnored{.stops_alone = 1}));
}

TEST(DeviceEvidenceReaderTest, KeepsEverySecondBeyondItsLimit) {
  DeviceEvidenceReader reader;
  const uint64_t executions = limits::kDeviceExecutionsMax + 1'000;
  for (uint64_t i = 0; i < executions; ++i) {
    Ring ring;
    ring.StartRun(i, i, 12, i * 1'000);
    ring.events.front().sequence = i;
    reader.Add(ring.events);
  }
  const DeviceExtraction found = reader.Finish();
  const std::vector<DeviceExecution>& kept = found.cores[0].evidence.executions;
  EXPECT_EQ(kept.size() + found.ignored.thinned, executions);
  EXPECT_GE(kept.size(), limits::kDeviceExecutionsMax / 2);
  EXPECT_LT(kept.size(), limits::kDeviceExecutionsMax);
  for (size_t i = 1; i < kept.size(); ++i) EXPECT_EQ(kept[i].exec_id, kept[i - 1].exec_id + 2);
}

}  // namespace
}  // namespace neurontrace
