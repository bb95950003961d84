// SPDX-License-Identifier: Apache-2.0
// Steps of the clocks are reported with their place and size, and nothing else is. Enough is kept
// to derive the rest, and no more than may be stored.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/clock/host_clock_watch.h"
#include "lib/clock/fake_host_clocks.h"

namespace neurontrace {
namespace {

class HostClockWatchTest : public testing::Test {
 protected:
  void OnTick(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      clocks_.AdvanceNs(HostClockWatch::kTickNs);
      watch_.OnTick();
    }
  }

  FakeHostClocks clocks_;
  uint64_t waited_ns_ = 0;
  ClockEvidence evidence_;
  HostClockWatch watch_{clocks_, [this] { return waited_ns_; }, evidence_};
};

TEST_F(HostClockWatchTest, ReportsNothingOnQuietMachine) {
  clocks_.SteerPpm(-30);
  OnTick(600);  // 30 s
  EXPECT_TRUE(evidence_.events.empty());
  EXPECT_GE(evidence_.snapshots.size(), 28u);
  EXPECT_LE(evidence_.snapshots.size(), 35u);
}

TEST_F(HostClockWatchTest, ReportsPause) {
  OnTick(25);
  const uint64_t before = clocks_.RawNs();
  clocks_.AdvanceNs(400'000'000);
  watch_.OnTick();
  ASSERT_EQ(evidence_.events.size(), 1u);
  EXPECT_EQ(evidence_.events[0].kind, ClockEventKind::kPause);
  EXPECT_EQ(evidence_.events[0].raw_begin_ns, before);
  EXPECT_EQ(evidence_.events[0].raw_end_ns, clocks_.RawNs());
  OnTick(100);
  EXPECT_EQ(evidence_.events.size(), 1u);
}

TEST_F(HostClockWatchTest, DoesNotMistakeBusyProcessorForPause) {
  OnTick(25);
  waited_ns_ += 350'000'000;
  clocks_.AdvanceNs(400'000'000);
  watch_.OnTick();
  EXPECT_TRUE(evidence_.events.empty());
}

TEST_F(HostClockWatchTest, ReportsSuspend) {
  OnTick(25);
  clocks_.SuspendNs(7'000'000'000);
  OnTick(10);
  ASSERT_EQ(evidence_.events.size(), 1u);
  EXPECT_EQ(evidence_.events[0].kind, ClockEventKind::kSuspend);
  EXPECT_EQ(evidence_.events[0].amount_ns, 7'000'000'000);
}

TEST_F(HostClockWatchTest, LocatesStepBetweenTwoTicksWithItsSize) {
  for (const int64_t step_ns : {-8'000'000, 250'000, 1'000'000'000}) {
    evidence_ = {};
    clocks_.SteerPpm(40);
    OnTick(37);
    clocks_.AdvanceNs(4'000'000);
    const uint64_t when = clocks_.RawNs();
    clocks_.StepRealtimeNs(step_ns);
    clocks_.AdvanceNs(30'000);
    watch_.OnRealtimeSet();
    ASSERT_EQ(evidence_.events.size(), 1u);
    const ClockEvent& event = evidence_.events[0];
    EXPECT_EQ(event.kind, ClockEventKind::kRealtimeStep);
    EXPECT_LE(event.raw_begin_ns, when);
    EXPECT_GE(event.raw_begin_ns + HostClockWatch::kTickNs, when);
    EXPECT_GE(event.raw_end_ns, when);
    EXPECT_LE(event.raw_end_ns, when + 50'000);
    EXPECT_NEAR(static_cast<double>(event.amount_ns), static_cast<double>(step_ns), 150);
    EXPECT_EQ(evidence_.snapshots.back().raw_end_ns, event.raw_end_ns);
  }
}

TEST_F(HostClockWatchTest, LocatesStepFirstSeenByTick) {
  OnTick(33);
  const uint64_t when = clocks_.RawNs();
  clocks_.StepRealtimeNs(2'000'000);
  OnTick(2);  // the timer's word comes late
  watch_.OnRealtimeSet();
  ASSERT_EQ(evidence_.events.size(), 1u);
  EXPECT_EQ(evidence_.events[0].raw_begin_ns, when);
  EXPECT_EQ(evidence_.events[0].amount_ns, 2'000'000);
}

TEST_F(HostClockWatchTest, KeepsASnapshotAtABreak) {
  OnTick(25);
  const uint64_t since = watch_.raw_ns();
  const size_t snapshots = evidence_.snapshots.size();
  clocks_.AdvanceNs(5'000'000);
  watch_.OnBreak(ClockEventKind::kMigration, since);
  ASSERT_EQ(evidence_.events.size(), 1u);
  EXPECT_EQ(evidence_.events[0].raw_begin_ns, since);
  EXPECT_GT(evidence_.snapshots.size(), snapshots);
}

TEST(ProcessorWait, GrowsAndIsReadable) {
  const auto waited = MakeProcessorWait();
  const uint64_t first = waited();
  EXPECT_GE(waited(), first);
}

}  // namespace
}  // namespace neurontrace
