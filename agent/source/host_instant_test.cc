// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host_instant.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

constexpr HostInstant kNow{
    .raw_ns = 50'000'000'000, .monotonic_ns = 60'000'000'000, .realtime_ns = 1'700'000'000'000'000};

TEST(HostInstantTest, NamesTheSameMomentOnTheOtherClocks) {
  const PlannedMoment ahead = PlanMoment(kNow.raw_ns + 7, kNow);
  EXPECT_TRUE(ahead.named);
  EXPECT_EQ(ahead.monotonic_ns, kNow.monotonic_ns + 7);
  EXPECT_EQ(ahead.realtime_ns, kNow.realtime_ns + 7);
  const PlannedMoment past = PlanMoment(kNow.raw_ns - 9, kNow);
  EXPECT_TRUE(past.named);
  EXPECT_EQ(past.monotonic_ns, kNow.monotonic_ns - 9);
  EXPECT_EQ(past.realtime_ns, kNow.realtime_ns - 9);
}

TEST(HostInstantTest, DefaultsToNowWithoutValidTime) {
  // The last is as far ahead as behind.
  for (const uint64_t raw_ns :
       {uint64_t{0}, kNow.raw_ns + kPlannedAheadMaxNs + 1, kNow.raw_ns + (uint64_t{1} << 63)}) {
    const PlannedMoment now = PlanMoment(raw_ns, kNow);
    EXPECT_FALSE(now.named);
    EXPECT_EQ(now.monotonic_ns, kNow.monotonic_ns);
  }
  const HostInstant young{.raw_ns = 50'000'000'000, .monotonic_ns = 5, .realtime_ns = 9};
  EXPECT_FALSE(PlanMoment(1, young).named) << "before the clock's zero";
}

TEST(HostInstantTest, ReadsTheClocksOfThisHost) {
  const HostInstant first = ReadHostInstant();
  const HostInstant second = ReadHostInstant();
  EXPECT_GT(first.raw_ns, 0u);
  EXPECT_GE(second.raw_ns, first.raw_ns);
  EXPECT_GE(second.monotonic_ns, first.monotonic_ns);
  EXPECT_GT(first.realtime_ns, 1'600'000'000'000'000'000u);
}

}  // namespace
}  // namespace neurontrace
