// SPDX-License-Identifier: Apache-2.0
// How fast the error of a model can change is worked out from the model alone, so it is compared
// with errors that a model of such bounds can have.
#include "aggregator/align/causal_clock.h"

#include <gtest/gtest.h>

#include "aggregator/align/causal_world_test_support.h"
#include "base/time_units.h"

namespace neurontrace {
namespace {

TEST(CausalGridTest, FindsEpochsAndKnots) {
  const CausalGrid grid{.begin_ns = 1'000, .epoch_ns = 100, .epochs = 3};
  EXPECT_EQ(grid.knots(), 4u);
  EXPECT_EQ(grid.EpochOf(0), 0u);
  EXPECT_EQ(grid.EpochOf(1'099), 0u);
  EXPECT_EQ(grid.EpochOf(1'100), 1u);
  EXPECT_EQ(grid.EpochOf(9'999), 2u);
  EXPECT_EQ(grid.NearestKnot(0), 0u);
  EXPECT_EQ(grid.NearestKnot(1'049), 0u);
  EXPECT_EQ(grid.NearestKnot(1'050), 1u);
  EXPECT_EQ(grid.NearestKnot(9'999), 3u);
}

TEST(CausalLimitsTest, CoverTheErrorsOfAModelAndHowTheyChange) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const CausalWorld world(
        {.seed = seed, .clocks = 6, .seconds = 60, .barriers_per_s = 1, .asymmetry_max_us = 60});
    const CausalGrid grid{
        .begin_ns = CausalWorld::kEpochNs, .epoch_ns = kNsPerSecond / 2, .epochs = 120};
    const CausalLimitsPair limits = LimitsOf(world.Clocks(), grid, 50, 200'000);
    for (uint32_t clock = 0; clock < 6; ++clock) {
      int64_t before = 0;
      for (size_t knot = 0; knot < grid.knots(); ++knot) {
        const auto true_ns = static_cast<int64_t>(grid.KnotNs(knot));
        const int64_t error = true_ns - static_cast<int64_t>(world.Stamp(clock, true_ns));
        ASSERT_LE(std::abs(error), limits.hard.Bound(knot, clock));
        if (knot > 0) {
          ASSERT_LE(std::abs(error - before), limits.hard.Slope(knot - 1, clock) + 2);
          ASSERT_LE(limits.likely.Slope(knot - 1, clock), limits.hard.Slope(knot - 1, clock));
          // Tight enough to be of use: 3 ppm.
          ASSERT_LE(limits.hard.Slope(knot - 1, clock), 1'600);
        }
        before = error;
      }
    }
  }
}

TEST(CausalLimitsTest, AModelThatJumpsMayBeOffByTheJump) {
  CausalClock clock{.name = "a", .knots = {}};
  for (uint64_t t = 0; t <= 100; t += 5) {
    // Follows evidence that is 20 us off from 50 s on.
    const uint64_t y = 1'000 * kNsPerSecond + t * kNsPerSecond + (t >= 50 ? 20'000 : 0);
    clock.knots.push_back(
        {.x_ns = t * kNsPerSecond, .y_ns = y, .bound_ns = 30'000, .likely_bound_ns = 700});
  }
  const CausalGrid grid{.begin_ns = 1'000 * kNsPerSecond, .epoch_ns = kNsPerSecond, .epochs = 100};
  const CausalLimitsPair limits = LimitsOf({clock}, grid, 50, 200'000);
  // A clock of smooth rate cannot have jumped. Over the ten seconds that its bounds tell most of it
  // has moved 2 us a second, and the model's 4 us a second in half of them are 2 too many.
  EXPECT_GE(limits.likely.Slope(47, 0), 2'000);
  EXPECT_LE(limits.likely.Slope(20, 0), 1'000);
}

TEST(CausalLimitsTest, WithoutAModelsWordAClockMayRunAsItLikes) {
  const CausalClock clock{
      .name = "a",
      .knots = {{.x_ns = 5, .y_ns = 10 * kNsPerSecond, .bound_ns = 100, .likely_bound_ns = 50}}};
  const CausalGrid grid{.begin_ns = 9 * kNsPerSecond, .epoch_ns = kNsPerSecond, .epochs = 4};
  const CausalLimitsPair limits = LimitsOf({clock}, grid, 50, 200'000);
  EXPECT_EQ(limits.hard.Slope(0, 0), 200'000);
  EXPECT_EQ(limits.hard.Bound(1, 0), 100);
  EXPECT_EQ(limits.hard.Bound(3, 0), 100 + 400'000);
}

TEST(CausalStampOfTest, KnowsTheSegmentAndSaysNothingBetweenTwo) {
  ClockModel model;
  for (uint64_t begin : {1'000u, 5'000u}) {
    ClockSegment segment;
    for (uint64_t x : {begin, begin + 1'000}) segment.knots.push_back({.x_ns = x, .y_ns = x + 70});
    model.segments.push_back(segment);
  }
  const auto clock_at = [&model](uint64_t x) {
    const auto stamp = CausalStampOf(model, 3, x);
    return stamp && stamp->reference_ns == x + 70 ? static_cast<int>(stamp->clock) : -1;
  };
  EXPECT_EQ(clock_at(10), 3);
  EXPECT_EQ(clock_at(2'000), 3);
  EXPECT_EQ(clock_at(2'001), -1);
  EXPECT_EQ(clock_at(5'000), 4);
  EXPECT_EQ(clock_at(9'000), 4);
  EXPECT_FALSE(CausalStampOf(ClockModel(), 0, 10).has_value());
}

}  // namespace
}  // namespace neurontrace
