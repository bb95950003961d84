// SPDX-License-Identifier: Apache-2.0
// The simulator's own truth: if it is wrong, so is every figure. Clocks can be read back,
// histograms count right, and all that a fit may read is true of the world that made it.
#include "tests/clock_sim/true_clock.h"

#include <gtest/gtest.h>

#include "tests/clock_sim/log_histogram.h"
#include "tests/clock_sim/steered_clock.h"

namespace neurontrace {
namespace {

constexpr int64_t kDuration = 60 * kSecond;

ClockPlan ExtremePlan(Dice& dice) {
  ClockPlan plan;
  plan.origin_ns = dice.Next64() % (100ull * 86'400 * kSecond);
  plan.frequency_ppm = dice.Normal(40);
  plan.walk_ppm_per_root_s = 0.1;
  plan.wave_ppm = 2;
  plan.jumps = {{.at_ns = 7 * kSecond + 123, .step_ns = 250 * kMillisecond, .rate_step_ppm = 12},
                {.at_ns = 20 * kSecond, .step_ns = -70 * kMicrosecond},
                {.at_ns = 30 * kSecond + 5, .step_ns = -2500 * kMillisecond},
                {.at_ns = 50 * kSecond + 999'999'999, .step_ns = 20 * kMicrosecond}};
  return plan;
}

TEST(TrueClock, ATimeCanBeReadBackFromItsReading) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Dice dice(seed);
    const TrueClock clock(ExtremePlan(dice), kDuration, Dice(seed, 1));
    for (int i = 0; i < 20'000; ++i) {
      const int64_t at =
          clock.WhenRunning(static_cast<int64_t>(dice.Unit() * static_cast<double>(kDuration)));
      const int64_t back = clock.TimeOf(clock.Read(at));
      ASSERT_LE(std::abs(back - at), 2) << "seed " << seed << ", at " << at;
    }
  }
}

TEST(TrueClock, NeverRunsBackwardsAndKeepsToItsRate) {
  Dice dice(3);
  const TrueClock clock(ExtremePlan(dice), kDuration, Dice(3, 1));
  uint64_t last = clock.Read(0);
  for (int64_t at = 0; at < kDuration; at += 97'001) {
    const uint64_t reading = clock.Read(at);
    ASSERT_GE(reading, last) << at;
    last = reading;
  }
  // Within a second without a jump a line with the rate of its middle is right to a nanosecond or
  // two, as the rate is linear there.
  for (int64_t second = 1; second < 6; ++second) {
    const int64_t begin = second * kSecond;
    const double gained =
        static_cast<double>(clock.Read(begin + kSecond) - clock.Read(begin)) - 1e9;
    EXPECT_NEAR(gained, clock.RatePpm(begin + kSecond / 2) * 1e3, 2) << second;
  }
}

TEST(TrueClock, JumpsAreAsLargeAsPlanned) {
  Dice dice(5);
  const ClockPlan plan = ExtremePlan(dice);
  const TrueClock clock(plan, kDuration, Dice(5, 1));
  const auto gained = [&](int64_t from, int64_t to) {
    return static_cast<int64_t>(clock.Read(to) - clock.Read(from)) - (to - from);
  };
  EXPECT_NEAR(static_cast<double>(gained(plan.jumps[0].at_ns - 1, plan.jumps[0].at_ns)), 250e6, 2);
  EXPECT_NEAR(static_cast<double>(gained(20 * kSecond, 20 * kSecond + 70 * kMicrosecond)), -70e3,
              2);
  EXPECT_EQ(clock.WhenRunning(20 * kSecond + 1), 20 * kSecond + 70 * kMicrosecond);
  const int64_t stop = plan.jumps[2].at_ns;
  EXPECT_EQ(clock.Read(stop), clock.Read(stop + 2'499 * kMillisecond));
  EXPECT_NEAR(clock.RatePpm(8 * kSecond) - clock.RatePpm(7 * kSecond), 12, 1);
}

TEST(TrueClock, TheSameSeedGivesTheSameClock) {
  Dice dice(8);
  const ClockPlan plan = ExtremePlan(dice);
  const TrueClock a(plan, kDuration, Dice(8, 1));
  const TrueClock b(plan, kDuration, Dice(8, 1));
  const TrueClock other(plan, kDuration, Dice(9, 1));
  EXPECT_EQ(a.Read(kDuration), b.Read(kDuration));
  EXPECT_NE(a.Read(kDuration), other.Read(kDuration));
}

TEST(SteeredClock, SlewsRealtimeAndMonotonicButStepsRealtimeAlone) {
  const SteeredClock clock(5'000'000'000, {{.raw_ns = 1000, .rate_ppm = 0},
                                           {.raw_ns = 1'001'000, .rate_ppm = 500},
                                           {.raw_ns = 2'001'000, .rate_ppm = 0, .step_ns = -5000}});
  EXPECT_EQ(clock.Realtime(1000), 5'000'000'000u);
  EXPECT_EQ(clock.Realtime(1'001'000), 5'001'000'000u);
  EXPECT_EQ(clock.Realtime(2'000'999), 5'002'000'498u);  // 999,999 and 499.9995
  EXPECT_EQ(clock.Realtime(2'001'000), 5'001'995'500u);
  EXPECT_EQ(clock.Monotonic(2'001'000) - clock.Monotonic(1000), 2'000'500u);
}

TEST(LogHistogram, GivesQuantilesWithinItsResolutionAndTheGreatestExactly) {
  LogHistogram histogram;
  LogHistogram half;
  for (int i = 1; i <= 10'000; ++i) (i % 2 == 0 ? histogram : half).Add(i * 7.0);
  histogram.Merge(half);
  EXPECT_EQ(histogram.count(), 10'000u);
  EXPECT_EQ(histogram.max(), 70'000.0);
  EXPECT_NEAR(histogram.Quantile(0.5), 35'000, 35'000 * 0.017);
  EXPECT_NEAR(histogram.Quantile(0.99), 69'300, 69'300 * 0.017);
  EXPECT_EQ(histogram.Quantile(1), 70'000.0);
  EXPECT_EQ(LogHistogram().Quantile(0.5), 0.0);
}

}  // namespace
}  // namespace neurontrace
