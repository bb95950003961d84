// SPDX-License-Identifier: Apache-2.0
// Goal: a line's knots answer for all that lies between them, and what is likely is possible.
#include "aggregator/align/clock_strip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kStripSecond = 1'000'000'000;

// The one end has the larger bound, the other the larger likely bound, and between them both are
// larger than at either: rows of such knots could not be read back.
TEST(ClockStripTest, WhatIsLikelyIsPossibleAlsoWhereTheTwoEndsAnswerForOneEach) {
  const std::vector<StripPoint> strip = {{0, {-10'000, 10'000}, {-10, 10}},
                                         {kStripSecond, {-11'000, 11'000}, {-9'500, 9'500}},
                                         {2 * kStripSecond, {-9'000, 9'000}, {-8'000, 8'000}}};
  const std::vector<ClockKnot> knots = KnotsOf(strip, {}, {}, 10'000);
  ASSERT_EQ(knots.size(), 2u);
  for (const ClockKnot& knot : knots) EXPECT_LE(knot.likely_bound_ns, knot.bound_ns) << knot.x_ns;
  EXPECT_GE(std::max(knots[0].bound_ns, knots[1].bound_ns), 11'000u);
  EXPECT_GE(std::max(knots[0].likely_bound_ns, knots[1].likely_bound_ns), 9'500u);
}

}  // namespace
}  // namespace neurontrace
