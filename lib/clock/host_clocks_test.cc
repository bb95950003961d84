// SPDX-License-Identifier: Apache-2.0
// Which bracket is kept, and that this machine's own clocks make sense.
#include "lib/clock/host_clocks.h"

#include <gtest/gtest.h>

#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

TEST(HostClocks, KeepsTheFirstNarrowBracket) {
  FakeHostClocks clocks;
  clocks.SetBrackets(5'000, 900, 100, 100);
  const ClockSnapshot snapshot = ReadHostClocks(clocks);
  EXPECT_EQ(snapshot.raw_end_ns - snapshot.raw_begin_ns, 900u);
  EXPECT_EQ(clocks.reads(), 2);
  EXPECT_EQ(snapshot.tick_us, 10'000u);
}

TEST(HostClocks, KeepsTheNarrowestWhereAllAreWide) {
  FakeHostClocks clocks;
  clocks.SetBrackets(5'000, 9'000, 3'000, 4'000);
  const ClockSnapshot snapshot = ReadHostClocks(clocks);
  EXPECT_EQ(snapshot.raw_end_ns - snapshot.raw_begin_ns, 3'000u);
  EXPECT_EQ(clocks.reads(), 4);
}

TEST(HostClocks, KnowsTheRateThatTheKernelSteersBy) {
  FakeHostClocks clocks;
  clocks.SteerPpm(-25);
  const ClockSnapshot snapshot = ReadHostClocks(clocks);
  EXPECT_NEAR(SteeringRate(snapshot), -25e-6, 1e-10);
  ClockSnapshot ticked = snapshot;
  ticked.tick_us = 10'100;  // 1 % and the frequency
  EXPECT_NEAR(SteeringRate(ticked), 0.01 - 25e-6, 1e-9);
}

TEST(HostClocks, ReadThisMachine) {
  const SystemHostClocks clocks;
  const uint64_t before = clocks.RawNs();
  const ClockSnapshot first = ReadHostClocks(clocks);
  const ClockSnapshot second = ReadHostClocks(clocks);
  EXPECT_LE(before, first.raw_begin_ns);
  EXPECT_LE(first.raw_begin_ns, first.raw_end_ns);
  EXPECT_LE(first.raw_end_ns, second.raw_begin_ns);
  EXPECT_LE(first.monotonic_ns, second.monotonic_ns);
  EXPECT_LE(first.monotonic_ns, first.boottime_ns + 1'000'000);
  EXPECT_GT(first.realtime_ns, 1'600'000'000'000'000'000u);
}

}  // namespace
}  // namespace neurontrace
