// SPDX-License-Identifier: Apache-2.0
// Goal: out of the stored events of a capture each device core gets a clock that puts its events
// where they were, within its bound; and where it is not known whose clock holds the runtime's
// stamps stay. Method: cores whose clocks are known, written to a store in chunks.
#include "aggregator/clocks/event_clocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/device/device_times.h"
#include "aggregator/clocks/core_world_test_support.h"
#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kMs = 1'000'000;

struct Outcome {
  size_t mapped = 0;
  size_t kept = 0;  // as the runtime stamped them
  size_t beyond_bound = 0;
  uint64_t worst_ns = 0;          // of the mapped
  uint64_t runtime_worst_ns = 0;  // of all
  uint64_t bound_ns = 0;          // the largest
};

class EventClocksTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok()); }

  // `executions` of 20 ms each, one every 50 ms.
  static void Run(TestCoreWorld& world, size_t executions, int64_t from_ns = 100 * kMs) {
    for (size_t i = 0; i < executions; ++i) {
      world.Execute(from_ns + static_cast<int64_t>(i) * 50 * kMs, 20 * kMs);
    }
  }
  CaptureClocks Clocks() {
    CaptureClocks clocks;
    const CaptureReader reader = store_->OpenCapture(TestCaptureId(1));
    const auto streams = reader.Streams();
    EXPECT_TRUE(streams.ok()) << streams.status();
    const absl::Status added = AddEventClocks(reader, *streams, {}, clocks);
    EXPECT_TRUE(added.ok()) << added;
    return clocks;
  }
  static uint64_t Apart(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }
  static Outcome Poll(const CaptureClocks& clocks, const TestCoreWorld& world,
                      const StreamIdentity& stream, bool names_cores = true) {
    DeviceTimes times;
    times.Begin(&clocks.maps, stream);
    Outcome outcome;
    for (const TestCoreWorld::Stamped& event : world.stamped()) {
      outcome.runtime_worst_ns =
          std::max(outcome.runtime_worst_ns, Apart(event.runtime_ns, event.true_host_ns));
      const auto time =
          times.Map({names_cores ? event.physical : std::nullopt, {event.sequence, event.exec_id}},
                    event.counter_ns, event.runtime_ns);
      if (!time) {
        ++outcome.kept;
        continue;
      }
      ++outcome.mapped;
      const uint64_t error = Apart(time->host_ns, event.true_host_ns);
      outcome.worst_ns = std::max(outcome.worst_ns, error);
      outcome.beyond_bound += error > time->bound_ns ? 1 : 0;
      outcome.bound_ns = std::max(outcome.bound_ns, time->bound_ns);
    }
    return outcome;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_ = Store::Open(directory_.path(), {.in_memory = true}).value();
};

TEST_F(EventClocksTest, ACounterThatDriftsIsWithinItsBoundWhereTheRuntimesStampsAreNot) {
  TestCoreWorld world({.host_ahead_ns = 3'000'000'000});
  for (int part = 0; part < 4; ++part) {
    Run(world, 50, (100 + part * 2'500) * kMs);
    world.Put(*store_, 1, TestStream(3));
  }
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 1u);
  EXPECT_EQ(clocks.devices[0].worker, TestStream(3).worker);
  EXPECT_EQ(clocks.devices[0].core, (DeviceCore{3, std::nullopt}));
  EXPECT_EQ(clocks.devices[0].executions, 200u);
  EXPECT_EQ(clocks.devices[0].sync_points, 200u);
  EXPECT_THAT(clocks.devices[0].findings, IsEmpty());
  const Outcome outcome = Poll(clocks, world, TestStream(3));
  EXPECT_EQ(outcome.kept, 0u);
  EXPECT_EQ(outcome.beyond_bound, 0u);
  EXPECT_LE(outcome.bound_ns, clocks.devices[0].bound_ns + 10);
  EXPECT_LE(outcome.bound_ns, 12'000u);
  EXPECT_LE(clocks.devices[0].bound_ns, 12'000u) << "extrapolated bounds do not count";
  EXPECT_LE(clocks.devices[0].likely_bound_ns, clocks.devices[0].bound_ns);
  EXPECT_GE(outcome.runtime_worst_ns, 10 * outcome.worst_ns);
}

TEST_F(EventClocksTest, ReportsDamagedChunk) {
  TestCoreWorld world({});
  Run(world, 50);
  world.Put(*store_, 1, TestStream(3));
  const ReceivedChunk damaged = TestChunk(1, TestStream(3), 1);
  ASSERT_TRUE(store_->chunks().PutBatch({&damaged, 1}).ok());
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 1u);
  EXPECT_EQ(clocks.devices[0].executions, 50u) << "readable chunks are used";
  ASSERT_THAT(clocks.devices[0].findings, SizeIs(1));
  EXPECT_THAT(clocks.devices[0].findings[0].words, HasSubstr("1 chunks of its core are damaged"));
}

TEST_F(EventClocksTest, UsesSyncPointsWithoutHostEvents) {
  TestCoreWorld world({.has_host_events = false});
  Run(world, 50);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  const Outcome outcome = Poll(clocks, world, TestStream(0));
  EXPECT_EQ(outcome.kept, 0u);
  EXPECT_EQ(outcome.beyond_bound, 0u);
  EXPECT_GE(clocks.devices[0].bound_ns, 10'000u);
}

TEST_F(EventClocksTest, WithoutSyncPointsItRestsOnBrackets) {
  TestCoreWorld world({.has_sync_points = false});
  Run(world, 50);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 1u);
  EXPECT_EQ(clocks.devices[0].sync_points, 0u);
  const Outcome outcome = Poll(clocks, world, TestStream(0));
  EXPECT_EQ(outcome.kept, 0u);
  EXPECT_EQ(outcome.beyond_bound, 0u);
}

TEST_F(EventClocksTest, ACounterThatStartsAgainHasAMapForEachRun) {
  TestCoreWorld world({});
  Run(world, 60);
  world.Put(*store_, 1, TestStream(0));
  // To what it has said before: its times are in the map twice.
  world.Reset(4'000 * kMs, 145'000'000'000);
  Run(world, 60, 4'000 * kMs);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 1u);
  EXPECT_EQ(clocks.devices[0].map.parts.size(), 2u);
  EXPECT_THAT(clocks.devices[0].findings,
              Contains(Field(&ClockFinding::kind, ClockFindingKind::kBreak)));
  for (const ClockFinding& finding : clocks.devices[0].findings) {
    EXPECT_GE(finding.x_end_ns, finding.x_begin_ns);
  }
  const Outcome outcome = Poll(clocks, world, TestStream(0));
  EXPECT_EQ(outcome.kept, 0u);
  EXPECT_EQ(outcome.beyond_bound, 0u);
  EXPECT_LE(outcome.bound_ns, 20'000u);
}

TEST_F(EventClocksTest, AHostsClockThatIsSetBackLeavesTheDevicesWhereTheyWere) {
  TestCoreWorld world({});
  Run(world, 60);
  world.SetHost(-8 * kMs);
  Run(world, 60, 4'000 * kMs);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  const Outcome outcome = Poll(clocks, world, TestStream(0));
  EXPECT_EQ(clocks.devices[0].map.parts.size(), 2u);
  EXPECT_EQ(outcome.kept, 0u);
  EXPECT_EQ(outcome.beyond_bound, 0u);
}

TEST_F(EventClocksTest, TwoPhysicalCoresOfALogicalOneHaveAClockEach) {
  TestCoreWorld world({.physical = {8, 9}});
  Run(world, 80);
  world.Put(*store_, 1, TestStream(4));
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 2u);
  EXPECT_EQ(clocks.devices[0].core, (DeviceCore{4, 8}));
  EXPECT_EQ(clocks.devices[1].core, (DeviceCore{4, 9}));
  for (const bool names_cores : {true, false}) {
    const Outcome outcome = Poll(clocks, world, TestStream(4), names_cores);
    EXPECT_EQ(outcome.kept, 0u) << "their counters are seconds apart";
    EXPECT_EQ(outcome.beyond_bound, 0u);
  }
}

TEST_F(EventClocksTest, CoresOfOtherStreamsWithTheSameNumbersAreOtherCores) {
  TestCoreWorld here({.seed = 1, .host_ahead_ns = 0, .physical = {0}, .counter_ppm = 40});
  TestCoreWorld there({.seed = 2, .host_ahead_ns = 0, .physical = {0}, .counter_ppm = -30});
  Run(here, 60);
  Run(there, 60);
  here.Put(*store_, 1, TestStream(0));
  there.Put(*store_, 1, TestStream(1));
  const CaptureClocks clocks = Clocks();
  EXPECT_EQ(clocks.devices.size(), 2u);
  EXPECT_EQ(Poll(clocks, here, TestStream(0)).beyond_bound, 0u);
  EXPECT_EQ(Poll(clocks, there, TestStream(1)).beyond_bound, 0u);
  EXPECT_EQ(Poll(clocks, there, TestStream(2)).mapped, 0u);
}

TEST_F(EventClocksTest, RestartedRingKeepsRuntimeStamps) {
  TestCoreWorld world({});
  Run(world, 20);
  world.Put(*store_, 1, TestStream(0));
  world.RestartRing();
  Run(world, 10, 2'000 * kMs);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  ASSERT_EQ(clocks.devices.size(), 1u);
  EXPECT_EQ(Poll(clocks, world, TestStream(0)).mapped, 0u);
  ASSERT_EQ(clocks.devices[0].findings.size(), 1u);
  EXPECT_THAT(clocks.devices[0].findings[0].words, HasSubstr("restarted during the capture"));
}

TEST_F(EventClocksTest, CoreWithoutEvidenceHasNoClock) {
  TestCoreWorld world({.has_sync_points = false, .has_host_events = false});
  Run(world, 20);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks clocks = Clocks();
  EXPECT_EQ(Poll(clocks, world, TestStream(0)).mapped, 0u);
}

TEST_F(EventClocksTest, TheSameChunksGiveTheSameMaps) {
  TestCoreWorld world({});
  Run(world, 30);
  world.Put(*store_, 1, TestStream(0));
  const CaptureClocks once = Clocks();
  const CaptureClocks again = Clocks();
  ASSERT_EQ(once.devices.size(), 1u);
  const auto pieces = once.devices[0].map.parts[0].map.pieces();
  const auto same = again.devices[0].map.parts[0].map.pieces();
  ASSERT_EQ(pieces.size(), same.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].raw_begin_ns, same[i].raw_begin_ns);
    EXPECT_EQ(pieces[i].reference_begin_ns, same[i].reference_begin_ns);
    EXPECT_EQ(pieces[i].rate, same[i].rate);
    EXPECT_EQ(pieces[i].error_bound_ns, same[i].error_bound_ns);
  }
}

}  // namespace
}  // namespace neurontrace
