// SPDX-License-Identifier: Apache-2.0
// Goal: a core's model holds the truth within its bounds and is near it, and what does not fit is
// omitted and reported. Method: evidence made from a clock that is known, then spoilt.
#include "aggregator/align/device/device_fit.h"

#include <gtest/gtest.h>

#include <string>

#include "aggregator/align/device/device_world_test_support.h"

namespace neurontrace {
namespace {

std::string ToString(const DeviceClockModel& model) {
  std::string words;
  for (const ClockFinding& finding : model.clock.findings) words += finding.words + "; ";
  return words;
}

TEST(DeviceFitTest, IsNearTheTruthAndNeverBeyondItsBound) {
  for (const bool after : {false, true}) {
    const DeviceTestWorld world({.host_reads_after = after});
    const DeviceClockModel model = FitDeviceClock(world.evidence, {});
    EXPECT_EQ(model.sync_order, after ? SyncOrder::kHostAfter : SyncOrder::kHostBefore);
    ASSERT_EQ(model.clock.segments.size(), 1u);
    EXPECT_EQ(ToString(model), "");
    const DeviceTestErrors errors = ErrorsOf(world, model);
    EXPECT_LE(errors.most_ns, 1'500);
    EXPECT_EQ(errors.beyond_bound, 0u);
    EXPECT_EQ(errors.beyond_likely, 0u);
    EXPECT_EQ(errors.backwards, 0u);
    EXPECT_LE(errors.bound_most_ns, 15'000u);
  }
}

TEST(DeviceFitTest, ExecutionsOfSecondsAreAsGood) {
  const DeviceTestWorld world({.executions = 80, .period_s = 3.02, .length_s = 3});
  const DeviceTestErrors errors = ErrorsOf(world, FitDeviceClock(world.evidence, {}));
  EXPECT_LE(errors.most_ns, 5'000);
  EXPECT_EQ(errors.beyond_bound, 0u);
}

TEST(DeviceFitTest, ACounterThatStartsAgainIsTwoSegments) {
  const DeviceTestWorld world({.reset_before = 120});
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  ASSERT_EQ(model.clock.segments.size(), 2u);
  EXPECT_EQ(model.clock.segments[1].cause, SegmentCause::kCounterReset);
  EXPECT_EQ(model.clock.evidence_rejected, 0u);
  EXPECT_EQ(ToString(model), "the counter restarted; ");
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most_ns, 1'500);
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.backwards, 0u);
}

TEST(DeviceFitTest, AHostsClockThatIsSetIsTwoSegments) {
  const DeviceTestWorld world({.step_before = 70});
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  ASSERT_EQ(model.clock.segments.size(), 2u);
  EXPECT_EQ(model.clock.segments[1].cause, SegmentCause::kDetected);
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most_ns, 1'500);
  EXPECT_EQ(errors.beyond_bound, 0u);
}

TEST(DeviceFitTest, BracketsOfAnotherExecutionAreRejected) {
  DeviceTestWorld world({});
  auto& executions = world.evidence.executions;
  for (const size_t i : {0ul, 50ul, 51ul, 120ul}) {
    executions[i].host_before_ns = executions[i + 5].host_before_ns;
    executions[i].host_after_ns = executions[i + 5].host_after_ns;
  }
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  ASSERT_EQ(model.clock.segments.size(), 1u);
  EXPECT_EQ(ToString(model), "executions whose times contradict all others: 4; ");
  EXPECT_EQ(model.clock.evidence_rejected, 4u);
  EXPECT_EQ(ErrorsOf(world, model).beyond_bound, 0u);
}

TEST(DeviceFitTest, WithoutAnExecutionInOrderSyncPointsHaveToDo) {
  DeviceTestWorld world({.executions = 5});
  auto& executions = world.evidence.executions;
  // All but the last are out of order by their host times, and the last by its number.
  for (size_t i = 0; i < executions.size(); ++i) {
    executions[i].host_before_ns = DeviceTestWorld::kHostBegin - i * 1'000'000;
  }
  executions.back().exec_id = 0;
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  EXPECT_EQ(ToString(model), "executions or sync points out of order: 5; ");
  ASSERT_EQ(model.clock.segments.size(), 1u);
  EXPECT_EQ(ErrorsOf(world, model).beyond_bound, 0u);
  world.evidence.sync_points.clear();
  EXPECT_TRUE(FitDeviceClock(world.evidence, {}).clock.segments.empty());
}

TEST(DeviceFitTest, ARunOfTheCounterWithoutAnExecutionInOrderIsNoSegment) {
  DeviceTestWorld world({.reset_before = 5});
  auto& executions = world.evidence.executions;
  for (size_t i = 0; i < 5; ++i) {
    executions[i].host_before_ns = DeviceTestWorld::kHostBegin - i * 1'000'000;
  }
  executions[4].exec_id = 0;
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  ASSERT_EQ(model.clock.segments.size(), 1u);
  EXPECT_EQ(model.clock.segments[0].cause, SegmentCause::kBegin);
  EXPECT_EQ(model.ranges[0].first_sequence, executions[5].first_sequence);
}

TEST(DeviceFitTest, WrongSyncPointsAreRejectedAndDoNoHarm) {
  DeviceTestWorld world({});
  auto& points = world.evidence.sync_points;
  points[20].host_ns += 2'000'000'000;  // later than those that follow
  points[40].host_ns += 300'000;        // far from the others
  points[60].host_ns -= 40'000;         // before its execution ended
  std::swap(points[80].exec_id, points[81].exec_id);
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  EXPECT_EQ(model.clock.evidence_rejected, 4u) << ToString(model);
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most_ns, 1'500);
  EXPECT_EQ(errors.beyond_likely, 0u);
}

TEST(DeviceFitTest, SyncPointsOnTheirOwnAreEnough) {
  DeviceTestWorld world({.reset_before = 100});
  world.evidence.executions.clear();
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  EXPECT_EQ(model.clock.segments.size(), 2u);
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most_ns, 3'000);
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_LE(errors.bound_most_ns, 25'000'000u) << "the bound that the parameters assume";
}

TEST(DeviceFitTest, BracketsOnTheirOwnAreEnough) {
  DeviceTestWorld world({});
  world.evidence.sync_points.clear();
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  EXPECT_EQ(model.sync_order, SyncOrder::kUnknown);
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most_ns, 8'000);
  EXPECT_EQ(errors.beyond_bound, 0u);
}

TEST(DeviceFitTest, AKnownOrderNeedsNoVote) {
  const DeviceTestWorld world({.executions = 5});
  EXPECT_EQ(FitDeviceClock(world.evidence, {}).sync_order, SyncOrder::kUnknown);
  DeviceFitParameters known;
  known.sync.order = SyncOrder::kHostAfter;
  const DeviceClockModel model = FitDeviceClock(world.evidence, known);
  EXPECT_EQ(model.sync_order, SyncOrder::kHostAfter);
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_LE(errors.most_ns, 4'000);
}

TEST(DeviceFitTest, NoEvidenceGivesNoModel) {
  const DeviceClockModel model = FitDeviceClock({}, {});
  EXPECT_TRUE(model.clock.segments.empty());
  const ClockReading reading = ReadDeviceClock(model, {77, 0, {}});
  EXPECT_EQ(reading.estimate.y_ns, 77u);
  EXPECT_EQ(reading.estimate.bound_ns, kNoBound);
}

}  // namespace
}  // namespace neurontrace
