// SPDX-License-Identifier: Apache-2.0
// Goal: the truth is always in the polygon, which is nearly as small as it can be. Method: a clock
// that wanders as badly as it may, and constraints that are true.
#include "aggregator/align/core/wander_polygon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace neurontrace {
namespace {

struct Truth {
  double offset = 0;
  double rate = 0;

  void Run(double seconds, double wander) {
    offset += rate * seconds + wander * seconds * seconds / 2;
    rate += wander * seconds;
  }
};

void ExpectHolds(const WanderPolygon& polygon, const Truth& truth) {
  const Interval offset = polygon.Offset();
  const Interval rate = polygon.Rate();
  ASSERT_LE(offset.min, truth.offset);
  ASSERT_GE(offset.max, truth.offset);
  ASSERT_LE(rate.min, truth.rate);
  ASSERT_GE(rate.max, truth.rate);
}

TEST(WanderPolygonTest, AlwaysHoldsAClockThatWandersAsBadlyAsItMay) {
  const WanderLimits limits;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> unit(0, 1);
    Truth truth{0, 2e5 * unit(random) - 1e5};
    WanderPolygon polygon({-1e4, 1e4}, {-1e5, 1e5});
    for (int i = 0; i < 2'000; ++i) {
      // From a microsecond to seconds, with all wander one way or the other.
      const double seconds = std::pow(10, -6 + 6.5 * unit(random));
      const double wander = limits.wander_ns_per_s2 * (unit(random) < 0.5 ? -1 : 1);
      truth.Run(seconds, wander);
      polygon.Propagate(seconds, limits);
      // Often constraints that are as sharp as can be.
      const double slack = unit(random) < 0.3 ? 0 : 3e3 * unit(random);
      if (unit(random) < 0.5) {
        ASSERT_TRUE(polygon.ClipAtMost(truth.offset + slack));
      } else {
        ASSERT_TRUE(polygon.ClipAtLeast(truth.offset - slack));
      }
      ExpectHolds(polygon, truth);
    }
  }
}

TEST(WanderPolygonTest, HoldsItBackwardsToo) {
  const WanderLimits limits;
  Truth truth{500, -300};
  WanderPolygon polygon({499, 501}, {-400, -200});
  truth.Run(-3, 50);
  polygon.Propagate(-3, limits);
  ExpectHolds(polygon, truth);
}

TEST(WanderPolygonTest, GrowsByTheWanderAndNotMuchMore) {
  const WanderLimits limits;
  constexpr double kReach = 50.0 * 10 * 10 / 2;
  WanderPolygon polygon({0, 0}, {0, 0});
  EXPECT_NEAR(polygon.OffsetAfter(10, limits).max, kReach, 0.1);
  // A box around the lens of what it can do.
  WanderPolygon once = polygon;
  once.Propagate(10, limits);
  EXPECT_LE(once.Offset().max, 1.5 * kReach + 1);
  EXPECT_NEAR(once.Rate().max, 500, 1);
  // Corners left out at every step, from nothing on.
  for (int i = 0; i < 100; ++i) polygon.Propagate(0.1, limits);
  EXPECT_GE(polygon.Offset().max, kReach);
  EXPECT_LE(polygon.Offset().max, 2 * kReach);
}

TEST(WanderPolygonTest, LearnsTheRateFromTwoConstraintsFarApart) {
  const WanderLimits calm{1, 1'000};
  WanderPolygon polygon({-10, 10}, {-1e5, 1e5});
  polygon.Propagate(10, calm);
  ASSERT_TRUE(polygon.ClipAtMost(200'010));
  ASSERT_TRUE(polygon.ClipAtLeast(199'990));
  EXPECT_NEAR(polygon.Rate().middle(), 20'000, 1);
  EXPECT_LT(polygon.Rate().width(), 40);
}

TEST(WanderPolygonTest, RejectsConstraintThatEmptiesPolygon) {
  WanderPolygon polygon({0, 10}, {-1, 1});
  EXPECT_FALSE(polygon.ClipAtMost(-1));
  EXPECT_FALSE(polygon.ClipAtLeast(11));
  EXPECT_FALSE(polygon.ClipAtMost(std::nan("")));
  EXPECT_NEAR(polygon.Offset().min, 0, 0.01);
  EXPECT_NEAR(polygon.Offset().max, 10, 0.01);
  EXPECT_TRUE(polygon.ClipAtMost(0));
  EXPECT_TRUE(polygon.ClipAtLeast(0));
}

TEST(WanderPolygonTest, IntersectionSatisfiesBoth) {
  const WanderLimits limits;
  WanderPolygon before({0, 100}, {-10, 10});
  WanderPolygon after({50, 200}, {-10, 10});
  const auto common = before.CommonOffset(after);
  ASSERT_TRUE(common.has_value());
  EXPECT_NEAR(common->min, 50, 0.1);
  EXPECT_NEAR(common->max, 100, 0.1);
  // At no offset do they allow the same rate.
  EXPECT_FALSE(before.CommonOffset(WanderPolygon({0, 100}, {20, 30})).has_value());
  EXPECT_FALSE(before.CommonOffset(WanderPolygon({200, 300}, {-10, 10})).has_value());
}

TEST(WanderPolygonTest, NeverHasManyCorners) {
  const WanderLimits limits;
  std::mt19937_64 random(3);
  std::exponential_distribution<double> slack(1e-3);
  WanderPolygon polygon({-1e4, 1e4}, {-1e5, 1e5});
  for (int i = 0; i < 10'000; ++i) {
    polygon.Propagate(0.1, limits);
    polygon.ClipAtMost(slack(random));
    polygon.ClipAtLeast(-slack(random));
    ASSERT_LE(polygon.vertex_count(), 24);
    ASSERT_GE(polygon.vertex_count(), 3);
  }
}

}  // namespace
}  // namespace neurontrace
