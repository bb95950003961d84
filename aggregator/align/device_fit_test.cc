// SPDX-License-Identifier: Apache-2.0
// Goal: a core's model holds the truth within its bounds, is near it, and stays so whatever becomes
// of single pieces of evidence. Method: evidence made from a clock that is known, then spoilt.
#include "aggregator/align/device_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "aggregator/align/device_world_test_support.h"

namespace neurontrace {
namespace {

struct Errors {
  double most = 0;
  size_t beyond_bound = 0;
  size_t beyond_likely = 0;
  size_t backwards = 0;
  uint64_t bound_most = 0;
};

Errors ErrorsOf(const DeviceTestWorld& world, const DeviceClockModel& model) {
  Errors errors;
  uint64_t before = 0;
  for (size_t i = 0; i < world.options.executions; ++i) {
    for (const double part : {0.0, 0.3, 0.7, 1.0}) {
      const double s = world.BeginOf(i) + part * world.options.length_s;
      const uint64_t x = world.CounterAt(s, i >= world.options.reset_before);
      const ClockEstimate estimate = ReadDeviceClock(model, {x, 10 * i + 3, 1 + i}).estimate;
      const double error = std::abs(
          static_cast<double>(static_cast<int64_t>(estimate.y_ns - DeviceTestWorld::HostAt(s))));
      errors.most = std::max(errors.most, error);
      errors.beyond_bound += error > static_cast<double>(estimate.bound_ns) ? 1 : 0;
      errors.beyond_likely += error > static_cast<double>(estimate.likely_bound_ns) ? 1 : 0;
      errors.backwards += estimate.y_ns < before ? 1 : 0;
      errors.bound_most = std::max(errors.bound_most, estimate.bound_ns);
      before = estimate.y_ns;
    }
  }
  return errors;
}

TEST(DeviceFitTest, IsNearTheTruthAndNeverBeyondItsBound) {
  for (const bool after : {false, true}) {
    const DeviceTestWorld world({.host_reads_after = after});
    const DeviceClockModel model = FitDeviceClock(world.evidence, {});
    EXPECT_EQ(model.sync_order, after ? SyncOrder::kHostAfter : SyncOrder::kHostBefore);
    ASSERT_EQ(model.clock.segments.size(), 1u);
    const Errors errors = ErrorsOf(world, model);
    EXPECT_LE(errors.most, 1'500);
    EXPECT_EQ(errors.beyond_bound, 0u);
    EXPECT_EQ(errors.beyond_likely, 0u);
    EXPECT_EQ(errors.backwards, 0u);
    EXPECT_LE(errors.bound_most, 15'000u);
  }
}

TEST(DeviceFitTest, ACounterThatStartsAgainIsTwoSegments) {
  DeviceTestWorld world({.reset_before = 120});
  const DeviceClockModel model = FitDeviceClock(world.evidence, {});
  ASSERT_EQ(model.clock.segments.size(), 2u);
  EXPECT_EQ(model.clock.segments[1].cause, SegmentCause::kCounterReset);
  EXPECT_EQ(model.clock.evidence_rejected, 0u);
  const Errors errors = ErrorsOf(world, model);
  EXPECT_LE(errors.most, 1'500);
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.backwards, 0u);
}

TEST(DeviceFitTest, OfNothingSaysNothing) {
  const DeviceClockModel model = FitDeviceClock({}, {});
  EXPECT_TRUE(model.clock.segments.empty());
  const ClockReading reading = ReadDeviceClock(model, {77, 0, {}});
  EXPECT_EQ(reading.estimate.y_ns, 77u);
  EXPECT_EQ(reading.estimate.bound_ns, kNoBound);
}

}  // namespace
}  // namespace neurontrace
