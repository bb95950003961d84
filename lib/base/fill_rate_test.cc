// SPDX-License-Identifier: Apache-2.0
// Goal: the rate follows what is taken out, rises faster than it falls, and what is not known is
// not made up.
#include "lib/base/fill_rate.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000 * kMs;
constexpr uint64_t kDay = 86'400 * kSecond;
constexpr uint64_t kStart = 1'000 * kSecond;

TEST(FillRateTest, UnknownBeforeFirstPoll) {
  FillRate fill;
  fill.Begin(kStart);
  EXPECT_FALSE(fill.known());
  EXPECT_EQ(fill.NsToFull(kStart + kSecond, 1000, kDay), FillRate::kUnknownNs);
  EXPECT_EQ(fill.Waiting(kStart + kSecond), 0);
}

TEST(FillRateTest, ASteadyRateIsFound) {
  FillRate fill;
  fill.Begin(kStart);
  for (int i = 1; i <= 100; ++i) fill.Took(kStart + i * 10 * kMs, 850, true);
  EXPECT_NEAR(fill.per_second(), 85'000, 1);
  // A ring of 64 Ki events, emptied just now.
  EXPECT_NEAR(static_cast<double>(fill.NsToFull(kStart + kSecond, 65'536, kDay)), 771e6, 1e6);
  // And 400 ms later without a look at it.
  EXPECT_NEAR(fill.Waiting(kStart + kSecond + 400 * kMs), 34'000, 10);
  EXPECT_NEAR(static_cast<double>(fill.NsToFull(kStart + kSecond + 400 * kMs, 65'536, kDay)), 371e6,
              1e6);
  EXPECT_EQ(fill.NsToFull(kStart + 2 * kSecond, 65'536, kDay), 0u);
}

TEST(FillRateTest, RisesWithinATenthOfASecondAndFallsWithinSeconds) {
  FillRate fill;
  fill.Begin(kStart);
  uint64_t now = kStart;
  const auto run = [&](uint64_t ms, uint64_t per_10_ms) {
    for (uint64_t i = 0; i < ms / 10; ++i) fill.Took(now += 10 * kMs, per_10_ms, true);
  };
  run(1000, 10);
  EXPECT_NEAR(fill.per_second(), 1'000, 1);
  run(200, 1000);
  EXPECT_GT(fill.per_second(), 80'000);
  run(1000, 10);
  EXPECT_GT(fill.per_second(), 30'000);
  run(10'000, 10);
  EXPECT_LT(fill.per_second(), 2'000);
}

TEST(FillRateTest, RemainderRaisesRate) {
  FillRate fill;
  fill.Begin(kStart);
  fill.Took(kStart + 100 * kMs, 4096, false);
  EXPECT_NEAR(fill.per_second(), 40'960, 1);
  // No emptier than it was: a second look at once makes the rate at least twice that.
  fill.Took(kStart + 100 * kMs, 4096, false);
  EXPECT_NEAR(fill.per_second(), 81'920, 1);
  EXPECT_NEAR(fill.Waiting(kStart + 200 * kMs), 8'192, 1);
  fill.Took(kStart + 200 * kMs, 8'192, true);
  EXPECT_EQ(fill.Waiting(kStart + 200 * kMs), 0);
}

TEST(FillRateTest, SilenceIsADayAtMost) {
  FillRate fill;
  fill.Begin(kStart);
  fill.Took(kStart + kSecond, 0, true);
  EXPECT_TRUE(fill.known());
  EXPECT_EQ(fill.NsToFull(kStart + kSecond, 65'536, kDay), kDay);
}

TEST(FillRateTest, TimeThatGoesBackIsNoTime) {
  FillRate fill;
  fill.Begin(kStart);
  fill.Took(kStart - kSecond, 5, true);
  fill.Took(kStart, 5, true);
  EXPECT_GT(fill.per_second(), 0);
  EXPECT_LE(fill.per_second(), 5'000);
  EXPECT_EQ(fill.Waiting(kStart - kSecond), 0);
}

}  // namespace
}  // namespace neurontrace
