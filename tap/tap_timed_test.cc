// SPDX-License-Identifier: Apache-2.0
// Goal: commands with a time take effect at it, and nothing is done before. Method: as tap_test.cc.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kLead = 100 * kNsPerMs;

TEST_F(TapTest, ReportsCommandVersion) {
  InitAndConnect();
  EXPECT_EQ(agent_.hello().header.version, kTapProtocolVersion);
  EXPECT_EQ(agent_.hello().protocol_newest, kTapProtocolVersion);
  StartCapture();
  for (const TapStatus& status : agent_.ReadStatuses()) {
    EXPECT_EQ(status.header.version, kTapProtocolVersion);
  }
}

TEST_F(TapTest, BeginsAtItsTimeAndSleepsUntilThen) {
  InitAndConnect();
  const uint64_t begin_ns = now_ns_ + kLead;
  agent_.Send(TapTestStartAt(1, begin_ns).Packet());
  EXPECT_EQ(tap_->Step(), begin_ns);
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kAccepted));
  EXPECT_EQ(State(), TapState::kIdle);
  Advance(kLead - 1);
  EXPECT_EQ(tap_->Step(), begin_ns);
  EXPECT_EQ(runtime_.starts, 0);
  Advance(1);
  const uint64_t begun_realtime_ns = clock_.realtime_ns();
  EXPECT_EQ(tap_->Step(), begin_ns + Tap::kQuietAfterBeginNs);
  EXPECT_EQ(runtime_.starts, 1);
  EXPECT_THAT(agent_.ReadStatuses(), IsEmpty());  // others on this machine begin now, too
  Advance(Tap::kQuietAfterBeginNs);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
  const std::vector<TapTestRecord> started = ReadOfType(TapRecordType::kTraceStarted);
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].header.host_realtime_ns, begun_realtime_ns);
}

TEST_F(TapTest, ATimeThatIsPastIsAtOnceAndOneTooFarAheadIsRefused) {
  InitAndConnect();
  agent_.Send(TapTestStartAt(1, now_ns_ + Tap::kAheadMaxNs + 1).Packet());
  agent_.Send(TapTestStartAt(2, 1).Packet());
  agent_.Send(TapTestStopPacket(2, now_ns_ + Tap::kAheadMaxNs + 1));
  Step();
  EXPECT_THAT(Answers(),
              ElementsAre(TapResult::kTooFarAhead, TapResult::kOk, TapResult::kTooFarAhead));
  EXPECT_EQ(State(), TapState::kStreaming);
  agent_.Send(TapTestStopPacket(2, now_ns_ - kNsPerSecond));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  EXPECT_FALSE(runtime_.running);
}

TEST_F(TapTest, ABeginningCanBeMovedUntilItIsThere) {
  InitAndConnect();
  agent_.Send(TapTestStartAt(1, now_ns_ + kLead).Packet());
  Step();
  agent_.Send(TapTestStartAt(1, now_ns_ + 3 * kLead).Packet());
  Step();
  Advance(2 * kLead);
  Step();
  EXPECT_EQ(runtime_.starts, 0);
  agent_.Send(TapTestStartAt(1, 0).Packet());
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
  agent_.Send(TapTestStartAt(1, now_ns_ + kLead).Packet());
  Step();
  EXPECT_EQ(State(), TapState::kStreaming);
  EXPECT_EQ(runtime_.starts, 1);
}

TEST_F(TapTest, StopsAtGivenTimeWithRecordedEvents) {
  InitAndConnect();
  StartCapture();
  Answers();
  const uint64_t stop_ns = now_ns_ + kLead;
  agent_.Send(TapTestStopPacket(1, stop_ns));
  EXPECT_LE(tap_->Step(), stop_ns);
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kAccepted));
  EXPECT_TRUE(runtime_.running);
  runtime_.Emit(0, 7);
  Advance(kLead);
  Step();
  EXPECT_FALSE(runtime_.running);
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  EXPECT_EQ(ReadOfType(TapRecordType::kFetchDocument).size(), 1u);
}

TEST_F(TapTest, AStopBeforeTheBeginningLeavesNothingToBegin) {
  InitAndConnect();
  agent_.Send(TapTestStartAt(1, now_ns_ + 2 * kLead).Packet());
  agent_.Send(TapTestStopPacket(1, now_ns_ + kLead));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kAccepted, TapResult::kAccepted));
  Advance(kLead);
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  Advance(2 * kLead);
  Step();
  EXPECT_EQ(runtime_.starts, 0);
  StartCapture(2);  // and it is free for another one
}

TEST_F(TapTest, YieldsWhileItWaitsForItsTime) {
  InitAndConnect();
  agent_.Send(TapTestStartAt(1, now_ns_ + kLead).Packet());
  Step();
  CallAsApp(RuntimeGate::Claim::kYield,
            [this] { gate_.SetProfiler(RuntimeGate::Profiler::kInspect, true); });
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  EXPECT_EQ(tap_->Step(), kNeverNs) << "the profiler's end wakes it";
  gate_.SetProfiler(RuntimeGate::Profiler::kInspect, false);
  EXPECT_EQ(tap_->Step(), now_ns_ + kLead) << "over before the time: kept";
  EXPECT_EQ(runtime_.starts, 0);
  gate_.SetProfiler(RuntimeGate::Profiler::kInspect, true);
  Advance(2 * kLead);
  Step();
  EXPECT_EQ(runtime_.starts, 0);
  gate_.SetProfiler(RuntimeGate::Profiler::kInspect, false);
  Step();
  EXPECT_EQ(State(), TapState::kStreaming) << "over after it: at once";
}

TEST_F(TapTest, BeginsAtItsTimeThoughItsAgentIsAway) {
  InitAndConnect();
  agent_.Send(TapTestStartAt(1, now_ns_ + kLead).Packet());
  Step();
  agent_.Hang();
  Advance(kLead);
  Step();
  EXPECT_TRUE(runtime_.running);
  Advance(kNsPerSecond);
  Step();
  ASSERT_TRUE(agent_.Accept());
  EXPECT_EQ(agent_.hello().capture_id[0], 1);
  agent_.Send(TapTestStartAt(1, now_ns_ - kNsPerSecond).Packet());
  Step();
  EXPECT_EQ(Answers().back(), TapResult::kOk);
  EXPECT_EQ(runtime_.starts, 1);
}

}  // namespace
}  // namespace neurontrace::tap
