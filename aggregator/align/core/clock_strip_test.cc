// SPDX-License-Identifier: Apache-2.0
// Goal: a line's knots answer for all that lies between them, and what is likely is possible.
#include "aggregator/align/core/clock_strip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kStripSecond = 1'000'000'000;

// The one end has the larger bound, the other the larger likely bound, and between them both are
// larger than at either: rows of such knots could not be read back.
TEST(ClockStripTest, LikelyIsWithinPossibleWithOneSideEach) {
  const std::vector<StripPoint> strip = {{0, {-10'000, 10'000}, {-10, 10}},
                                         {kStripSecond, {-11'000, 11'000}, {-9'500, 9'500}},
                                         {2 * kStripSecond, {-9'000, 9'000}, {-8'000, 8'000}}};
  const std::vector<ClockKnot> knots = KnotsOf(strip, {}, {}, 10'000);
  ASSERT_EQ(knots.size(), 2u);
  for (const ClockKnot& knot : knots) EXPECT_LE(knot.likely_bound_ns, knot.bound_ns) << knot.x_ns;
  EXPECT_GE(std::max(knots[0].bound_ns, knots[1].bound_ns), 11'000u);
  EXPECT_GE(std::max(knots[0].likely_bound_ns, knots[1].likely_bound_ns), 9'500u);
}

// Rows of lines that no clock makes could not be read back.
TEST(ClockStripTest, LineIsFeasibleAndItsBoundsGrowByCorrection) {
  const Interval wide = {-60e9, 60e9};
  const std::vector<StripPoint> strip = {{0, wide, wide, -1e9},
                                         {kStripSecond, wide, wide, 50e9},
                                         {2 * kStripSecond, wide, wide, 49.9e9},
                                         {3 * kStripSecond, wide, wide, 10e9}};
  const PairOrigin origin = {0, 1'000 * int64_t{kStripSecond}};
  const std::vector<ClockKnot> knots = KnotsOf(strip, origin, {}, 100);
  ASSERT_EQ(knots.size(), strip.size());
  for (size_t k = 1; k < knots.size(); ++k) {
    ASSERT_GE(knots[k].y_ns, knots[k - 1].y_ns) << k;
    EXPECT_LE(knots[k].y_ns - knots[k - 1].y_ns, 2 * kStripSecond) << k;
  }
  // The truth may be at any end of what was possible, at the points and between them.
  for (size_t k = 0; k + 1 < knots.size(); ++k) {
    const uint64_t bound_ns = std::max(knots[k].bound_ns, knots[k + 1].bound_ns);
    for (double share = 0; share <= 1; share += 0.25) {
      const double y = static_cast<double>(knots[k].y_ns) * (1 - share) +
                       static_cast<double>(knots[k + 1].y_ns) * share;
      const double truth = (1'000 + static_cast<double>(k) + share) * 1e9;
      EXPECT_GE(static_cast<double>(bound_ns), y - (truth - 60e9)) << k << " " << share;
      EXPECT_GE(static_cast<double>(bound_ns), truth + 60e9 - y) << k << " " << share;
    }
  }
}

}  // namespace
}  // namespace neurontrace
