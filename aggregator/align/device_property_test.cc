// SPDX-License-Identifier: Apache-2.0
// Goal: what is promised of a core's model holds whatever evidence there is. Method: worlds drawn
// from a seed, which a failure prints, spoilt in ways drawn from it too.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "aggregator/align/device/device_fit.h"
#include "aggregator/align/device/device_world_test_support.h"

namespace neurontrace {
namespace {

// Anything random of one case.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed * 7919 + 3) {}
  double Unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool Chance(double share) { return Unit() < share; }
  // From nothing to seconds, mostly little.
  uint64_t Delay() { return Chance(0.3) ? 0 : static_cast<uint64_t>(std::pow(10.0, 9.5 * Unit())); }

 private:
  std::mt19937_64 random_;
};

DeviceTestWorld WorldOf(uint64_t seed) {
  Draw draw(seed);
  DeviceTestWorld::Options options;
  options.seed = seed;
  options.executions = 20 + static_cast<size_t>(60 * draw.Unit());
  options.period_s = 0.01 + draw.Unit();
  options.length_s = options.period_s * (0.1 + 0.8 * draw.Unit());
  options.frequency_ppm = 200 * draw.Unit() - 100;
  options.host_reads_after = draw.Chance(0.5);
  options.records_sync_points = draw.Chance(0.5);
  if (draw.Chance(0.3)) options.reset_before = options.executions / 2;
  return DeviceTestWorld(options);
}

void ExpectPromisesKept(const DeviceTestWorld& world, const DeviceEvidence& evidence) {
  const DeviceClockModel model = FitDeviceClock(evidence, {});
  const DeviceTestErrors errors = ErrorsOf(world, model);
  EXPECT_EQ(errors.beyond_bound, 0u);
  EXPECT_EQ(errors.backwards, 0u);
  for (const ClockSegment& segment : model.clock.segments) {
    for (const ClockKnot& knot : segment.knots) EXPECT_LE(knot.likely_bound_ns, knot.bound_ns);
  }
  EXPECT_EQ(model, FitDeviceClock(evidence, {})) << "the same evidence, another model";
}

constexpr uint64_t kCases = 150;

TEST(DevicePropertyTest, NoDelayThatIsAddedBreaksABound) {
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DeviceTestWorld world = WorldOf(seed);
    Draw draw(seed + 1'000);
    for (DeviceExecution& execution : world.evidence.executions) {
      *execution.host_before_ns -= draw.Delay();
      *execution.host_after_ns += draw.Delay();
    }
    for (DeviceSyncPoint& point : world.evidence.sync_points) {
      const uint64_t delay = draw.Delay();
      point.host_ns += world.options.host_reads_after ? delay : 0 - delay;
      if (point.recorded_ns) *point.recorded_ns += delay + draw.Delay();
    }
    ExpectPromisesKept(world, world.evidence);
  }
}

// The order of the readings that such delays suggest is the wrong one.
TEST(DevicePropertyTest, NorDoDelaysThatLookLikeTheOtherOrder) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DeviceTestWorld world = WorldOf(seed);
    Draw draw(seed + 2'000);
    for (DeviceSyncPoint& point : world.evidence.sync_points) {
      // Nearly all of them late by about the same, few by less.
      const auto delay = static_cast<uint64_t>(30'000 * (1 - draw.Unit() * draw.Unit()));
      point.host_ns += world.options.host_reads_after ? delay : 0 - delay;
      point.recorded_ns.reset();
    }
    ExpectPromisesKept(world, world.evidence);
  }
}

TEST(DevicePropertyTest, SyncPointsThatAreWrongLostOrAnothersBreakNone) {
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DeviceTestWorld world = WorldOf(seed);
    Draw draw(seed + 3'000);
    std::vector<DeviceSyncPoint>& points = world.evidence.sync_points;
    const double share = draw.Unit();
    std::vector<DeviceSyncPoint> kept;
    for (size_t i = 0; i < points.size(); ++i) {
      if (draw.Chance(share / 3)) points[i].host_ns += draw.Delay() - draw.Delay();
      if (draw.Chance(share / 3)) points[i].device_ns += draw.Delay();
      if (i > 0 && draw.Chance(share / 3)) std::swap(points[i].exec_id, points[i - 1].exec_id);
      points[i].recorded_ns.reset();
      if (!draw.Chance(share / 3)) kept.push_back(points[i]);
    }
    points = kept;
    ExpectPromisesKept(world, world.evidence);
  }
}

TEST(DevicePropertyTest, ExecutionsThatAreLostOrLackASideBreakNone) {
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    DeviceTestWorld world = WorldOf(seed);
    Draw draw(seed + 4'000);
    std::vector<DeviceExecution> kept;
    for (DeviceExecution execution : world.evidence.executions) {
      if (draw.Chance(0.1)) execution.host_before_ns.reset();
      if (draw.Chance(0.1)) execution.host_after_ns.reset();
      if (draw.Chance(0.1)) execution.device_start_ns.reset();
      if (draw.Chance(0.1)) execution.device_end_ns.reset();
      if (!draw.Chance(0.2)) kept.push_back(execution);
    }
    world.evidence.executions = kept;
    ExpectPromisesKept(world, world.evidence);
  }
}

// All times of one clock moved by as much: the model is the same, moved by that.
TEST(DevicePropertyTest, IsIndependentOfClockOrigin) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const DeviceTestWorld world = WorldOf(seed);
    constexpr uint64_t kMoved = 1'234'567'891'234;
    DeviceEvidence moved = world.evidence;
    for (DeviceExecution& execution : moved.executions) {
      *execution.host_before_ns += kMoved;
      *execution.host_after_ns += kMoved;
    }
    for (DeviceSyncPoint& point : moved.sync_points) {
      point.host_ns += kMoved;
      if (point.recorded_ns) *point.recorded_ns += kMoved;
    }
    DeviceClockModel expected = FitDeviceClock(world.evidence, {});
    for (ClockSegment& segment : expected.clock.segments) {
      for (ClockKnot& knot : segment.knots) knot.y_ns += kMoved;
    }
    EXPECT_EQ(FitDeviceClock(moved, {}), expected);
  }
}

}  // namespace
}  // namespace neurontrace
