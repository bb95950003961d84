// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/clock_bounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/align/clock_reading.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;

ClockMap Map() {
  return *ClockMap::FromPieces(
      {{1'000, 51'000, 0, 30}, {2'000, 52'000, 0, {}}, {3'000, 53'000, 0, 40}});
}

TEST(ClockBoundsTest, AreOfThePiecesThatReachIntoTheWindow) {
  EXPECT_THAT(BoundsIn(Map(), {51'500, 53'500}),
              ElementsAre(ClockBound{51'500, 52'000, 30}, ClockBound{52'000, 53'000, kNoBound},
                          ClockBound{53'000, 53'500, 40}));
  EXPECT_THAT(BoundsIn(Map(), {53'000, 53'001}), ElementsAre(ClockBound{53'000, 53'001, 40}));
}

TEST(ClockBoundsTest, TheFirstAndTheLastHoldBeyond) {
  EXPECT_THAT(BoundsIn(Map(), {7, 9}), ElementsAre(ClockBound{7, 9, 30}));
  EXPECT_THAT(BoundsIn(Map(), {90'000, 95'000}), ElementsAre(ClockBound{90'000, 95'000, 40}));
}

// REALTIME was set ahead: from 2,000 to 3,000 it never was, and that took no time.
TEST(ClockBoundsTest, AreNotOfStampsThatNeverWere) {
  const ClockMap map = *ClockMap::FromPieces(
      {{1'000, 51'000, 0, 30}, {2'000, 52'000, -ClockMap::kRateMax, {}}, {3'000, 52'000, 0, 40}});
  EXPECT_THAT(BoundsIn(map, {51'500, 53'500}),
              ElementsAre(ClockBound{51'500, 52'000, 30}, ClockBound{52'000, 53'500, 40}));
}

TEST(ClockBoundsTest, OfAMomentAndOfAMapThatKnowsNothing) {
  EXPECT_THAT(BoundsIn(Map(), {52'000, 52'000}), ElementsAre(ClockBound{52'000, 52'000, kNoBound}));
  EXPECT_THAT(BoundsIn(ClockMap(), {5, 6}), ElementsAre(ClockBound{5, 6, kNoBound}));
}

}  // namespace
}  // namespace neurontrace
