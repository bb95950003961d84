// SPDX-License-Identifier: Apache-2.0
// Goal: the interval follows the rate between its bounds, and a small ring shortens the longest
// one.
#include "tap/drain_schedule.h"

#include "gtest/gtest.h"

namespace neurontrace {
namespace {

constexpr uint64_t kNow = 1'000 * kNsPerSecond;
constexpr uint64_t kFetch = 4096;

TEST(DrainScheduleTest, AllCoresAreDueAtOnce) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 64, 65536);
  EXPECT_EQ(schedule.NextDueNs(), kNow);
  EXPECT_TRUE(schedule.IsDue(63, kNow));
}

TEST(DrainScheduleTest, NothingIsDueWithoutCores) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 0, 65536);
  EXPECT_EQ(schedule.NextDueNs(), kNeverNs);
}

TEST(DrainScheduleTest, QuietCoresAreLookedAtEvery200Ms) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 1, 65536);
  for (int i = 0; i < 10; ++i) schedule.Drained(0, kNow, 0, kFetch);
  EXPECT_EQ(schedule.interval_ns(0), DrainSchedule::kIntervalMaxNs);
  EXPECT_EQ(schedule.NextDueNs(), kNow + 200 * kNsPerMs);
}

TEST(DrainScheduleTest, FullFetchesShortenTheIntervalDownTo5Ms) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 1, 65536);
  for (int i = 0; i < 10; ++i) schedule.Drained(0, kNow, 0, kFetch);
  schedule.Drained(0, kNow, kFetch, kFetch);
  EXPECT_EQ(schedule.interval_ns(0), 50 * kNsPerMs);
  schedule.Drained(0, kNow, kFetch / 2, kFetch);
  EXPECT_EQ(schedule.interval_ns(0), 25 * kNsPerMs);
  for (int i = 0; i < 10; ++i) schedule.Drained(0, kNow, 3 * kFetch, kFetch);
  EXPECT_EQ(schedule.interval_ns(0), DrainSchedule::kIntervalMinNs);
}

TEST(DrainScheduleTest, SettlesWhereFetchesComeBackPartlyFull) {
  // A steady rate must find one interval and stay there, with fetches between 1/8 and 1/2 full.
  for (const uint64_t rate : {2'000u, 20'000u, 85'000u, 300'000u}) {
    DrainSchedule schedule;
    schedule.Begin(kNow, 1, 1 << 20);
    uint64_t events = 0;
    for (int i = 0; i < 50; ++i) {
      events = rate * schedule.interval_ns(0) / kNsPerSecond;
      schedule.Drained(0, kNow, events, kFetch);
    }
    EXPECT_LT(events, kFetch / 2) << rate;
    EXPECT_EQ(events, rate * schedule.interval_ns(0) / kNsPerSecond) << rate;
  }
}

TEST(DrainScheduleTest, A64kRingAt85000EventsASecondNeverWraps) {
  // Even right after a quiet time, when the interval is the longest.
  DrainSchedule schedule;
  schedule.Begin(kNow, 1, 65536);
  for (int i = 0; i < 10; ++i) schedule.Drained(0, kNow, 0, kFetch);
  EXPECT_LT(85'000 * schedule.interval_ns(0) / kNsPerSecond, 65536 / 2);
}

TEST(DrainScheduleTest, ASmallRingShortensTheLongestInterval) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 1, 4096);
  for (int i = 0; i < 10; ++i) schedule.Drained(0, kNow, 0, kFetch);
  EXPECT_EQ(schedule.interval_ns(0), 4096 * (kNsPerSecond / 200'000));
}

TEST(DrainScheduleTest, CoresKeepTheirOwnPace) {
  DrainSchedule schedule;
  schedule.Begin(kNow, 2, 65536);
  for (int i = 0; i < 10; ++i) {
    schedule.Drained(0, kNow, 0, kFetch);
    schedule.Drained(1, kNow, kFetch, kFetch);
  }
  EXPECT_EQ(schedule.interval_ns(0), DrainSchedule::kIntervalMaxNs);
  EXPECT_EQ(schedule.interval_ns(1), DrainSchedule::kIntervalMinNs);
  EXPECT_TRUE(schedule.IsDue(1, kNow + 5 * kNsPerMs));
  EXPECT_FALSE(schedule.IsDue(0, kNow + 5 * kNsPerMs));
}

}  // namespace
}  // namespace neurontrace
