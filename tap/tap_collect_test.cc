// SPDX-License-Identifier: Apache-2.0
// Goal: a trace that holds costs nothing until it is collected from, and then everything that its
// rings have is handed over once. Method: as tap_test.cc.
#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint8_t kRecorder = 1;
constexpr uint8_t kSnapshot = 2;

class TapCollectTest : public TapTest {
 protected:
  void Hold(uint64_t ring_events = 65'536) {
    runtime_.ring_events = ring_events;
    InitAndConnect();
    TapTestStart start = TapTestStartAt(kRecorder, 0, true);
    start.start.max_events_per_nc = ring_events;
    agent_.Send(start.Packet());
    Step();
    ASSERT_EQ(State(), TapState::kHolding);
    ASSERT_THAT(Answers(), ElementsAre(TapResult::kOk));
  }
  // Steps as the thread would until nothing of a collection is left, its agent reading all the
  // time.
  void Collect(uint8_t snapshot = kSnapshot) {
    agent_.Send(TapTestCollectPacket(kRecorder, snapshot));
    for (int i = 0; i < 10'000; ++i) {
      Step();
      Keep();
      for (const TapResult answer : Answers()) {
        if (answer == TapResult::kOk) return;
      }
      Advance(RuntimeTrace::kCollectPauseNs);
    }
    FAIL() << "not collected";
  }
  void Keep() {
    for (TapTestRecord& record : agent_.Read()) records_.push_back(std::move(record));
  }
  // Of a capture: types by name, and the events that its documents hold.
  std::string Summary(uint8_t capture) const {
    std::string told;
    uint64_t events = 0;
    for (const TapTestRecord& record : records_) {
      if (record.header.capture_id[0] != capture) continue;
      const auto type = static_cast<TapRecordType>(record.header.type);
      if (type == TapRecordType::kTraceStarted) {
        told += record.header.flags == kTapRecordFlagCollected ? "collected " : "started ";
      } else if (type == TapRecordType::kTraceStopped) {
        TapTraceStopped stopped;
        memcpy(&stopped, record.payload.data(), sizeof stopped);
        told += "stopped:" + std::to_string(stopped.reason) +
                (stopped.final_drain_complete != 0 ? " " : ":incomplete ");
      }
      for (size_t at = 0; (at = record.payload.find("\"nc_local_id\"", at)) != std::string::npos;
           ++at) {
        ++events;
      }
    }
    return told + std::to_string(events);
  }

  std::vector<TapTestRecord> records_;
};

TEST_F(TapCollectTest, HoldsWithoutAFetchOrAWakeUp) {
  Hold();
  agent_.Read();
  Advance(Tap::kReleaseMemoryFirstNs);
  EXPECT_EQ(tap_->Step(), kNeverNs) << "sleeps like an idle one";
  for (int i = 0; i < 100; ++i) {
    runtime_.Emit(0, 5'000);
    Advance(kNsPerSecond);
    EXPECT_EQ(tap_->Step(), kNeverNs);
  }
  EXPECT_EQ(runtime_.fetches, 0);
  EXPECT_EQ(State(), TapState::kHolding);
  Keep();
  EXPECT_TRUE(records_.empty());
}

TEST_F(TapCollectTest, CollectsRingsAndKeepsHolding) {
  Hold(8'192);
  runtime_.Emit(0, 100'000);  // wraps: the newest 8,192 are left
  runtime_.Emit(1, 10);
  Collect();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 8202");
  EXPECT_EQ(Summary(kRecorder), "started 0");
  EXPECT_EQ(State(), TapState::kHolding);
  agent_.Read();
  Advance(Tap::kReleaseMemoryFirstNs);
  EXPECT_EQ(tap_->Step(), kNeverNs);
  runtime_.Emit(1, 3);
  Collect(3);
  EXPECT_EQ(Summary(3), "collected stopped:7 3") << "what came since";
  agent_.Send(TapTestStopPacket(kRecorder));
  Step();
  Keep();
  EXPECT_EQ(Summary(kRecorder), "started stopped:1 0");
  EXPECT_EQ(runtime_.starts, 1);
  EXPECT_EQ(runtime_.stops, 1);
  EXPECT_EQ(runtime_.misuses, 0);
  EXPECT_EQ(runtime_.live_buffers, 0);
}

TEST_F(TapCollectTest, CollectsAtItsTime) {
  Hold();
  agent_.Read();
  Advance(Tap::kReleaseMemoryFirstNs);
  Step();
  runtime_.Emit(0, 5);
  const uint64_t cut_ns = now_ns_ + 200 * kNsPerMs;
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot, cut_ns));
  EXPECT_EQ(tap_->Step(), cut_ns);
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kAccepted));
  EXPECT_EQ(runtime_.fetches, 0);
  runtime_.Emit(0, 2);
  Advance(200 * kNsPerMs);
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  Keep();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 7");
}

TEST_F(TapCollectTest, ARingThatHoldsNothingIsSoonCollected) {
  Hold();
  Collect();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 0");
  EXPECT_EQ(runtime_.fetches, 2) << "one a core";
}

TEST_F(TapCollectTest, ManyOfMoreThanTheBufferHoldsComeAsTheAgentMakesRoom) {
  Hold(30'000);
  runtime_.Emit(0, 30'000);  // ten times the shared ring
  runtime_.Emit(1, 30'000);
  Collect();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 60000");
  EXPECT_EQ(agent_.header()->counters.refused_documents.load(), 0u);
}

TEST_F(TapCollectTest, AnAgentThatReadsNothingIsWaitedForSoLong) {
  Hold(30'000);
  runtime_.Emit(0, 30'000);
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  for (uint64_t ns = 0; ns <= RuntimeTrace::kCollectBudgetNs; ns += 100 * kNsPerMs) {
    Step();
    Advance(100 * kNsPerMs);
  }
  Step();
  EXPECT_EQ(Answers().back(), TapResult::kOk);
  Keep();
  EXPECT_THAT(Summary(kSnapshot), HasSubstr("stopped:7:incomplete"));
  EXPECT_EQ(State(), TapState::kHolding);
}

TEST_F(TapCollectTest, ACoreThatNeverFallsSilentIsDoneAfterARingful) {
  Hold(4'096);
  runtime_.Emit(0, 4'096);
  runtime_.during_fetch = [this](uint32_t) { runtime_.Emit(0, 4'096); };
  Collect();
  EXPECT_THAT(Summary(kSnapshot), HasSubstr("stopped:7 "));
  EXPECT_LT(runtime_.fetches, 20);
}

TEST_F(TapCollectTest, ACollectionIsDoneOnce) {
  Hold();
  runtime_.Emit(0, 5);
  Collect();
  runtime_.Emit(0, 5);
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  Keep();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 5");
  EXPECT_EQ(runtime_.backlog[0], 5u);
}

TEST_F(TapCollectTest, ReportsNothingHeld) {
  InitAndConnect();
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kNothingHeld));
  StartCapture(kRecorder);  // streams
  Answers();
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  agent_.Send(TapTestCollectPacket(9, kSnapshot));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kNothingHeld, TapResult::kNothingHeld));
}

TEST_F(TapCollectTest, LimitsPendingCollections) {
  Hold();
  for (uint8_t i = 0; i <= kTapCollectsMax; ++i) {
    agent_.Send(TapTestCollectPacket(kRecorder, static_cast<uint8_t>(10 + i),
                                     now_ns_ + (10 - i) * kNsPerMs));
    agent_.Send(TapTestCollectPacket(kRecorder, 10, now_ns_ + 10 * kNsPerMs));
  }
  Step();
  std::vector<int> refused;
  for (const TapStatus& status : agent_.ReadStatuses()) {
    if (status.result != static_cast<uint32_t>(TapResult::kAnotherCapture)) continue;
    refused.push_back(status.capture_id[0]);
  }
  EXPECT_THAT(refused, ElementsAre(10 + kTapCollectsMax)) << "the one that was asked for";
  runtime_.Emit(0, 1);
  for (uint32_t i = 0; i < 2 * kTapCollectsMax; ++i) {
    Advance(10 * kNsPerMs);
    Step();
  }
  Keep();
  EXPECT_EQ(Summary(13), "collected stopped:7 1") << "the one whose time came first";
  EXPECT_EQ(Summary(10), "collected stopped:7 0");
}

TEST_F(TapCollectTest, YieldReleasesRingsAndReportsIt) {
  Hold();
  runtime_.Emit(0, 50);
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot, now_ns_ + kNsPerSecond));
  Step();
  Answers();
  CallAsApp(RuntimeGate::Claim::kYield,
            [this] { gate_.SetProfiler(RuntimeGate::Profiler::kInspect, true); });
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kNothingHeld));
  EXPECT_EQ(State(), TapState::kBusyOtherProfiler);
  EXPECT_EQ(runtime_.fetches, 0) << "nobody asked for what they held";
  agent_.Send(TapTestCollectPacket(kRecorder, 3));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kNothingHeld));
  runtime_.backlog.clear();  // as a runtime does whose trace is stopped
  gate_.SetProfiler(RuntimeGate::Profiler::kInspect, false);
  Step();
  EXPECT_EQ(State(), TapState::kHolding);
  runtime_.Emit(0, 4);
  Collect(4);
  EXPECT_EQ(Summary(kRecorder), "started stopped:4 started 0");
  EXPECT_EQ(Summary(4), "collected stopped:7 4");
  EXPECT_EQ(runtime_.misuses, 0);
}

TEST_F(TapCollectTest, YieldDuringCollectionKeepsPartialData) {
  Hold(30'000);
  runtime_.Emit(0, 10'000);
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  Step();  // more than the shared ring takes
  ASSERT_THAT(Answers(), ElementsAre(TapResult::kAccepted));
  Keep();
  CallAsApp(RuntimeGate::Claim::kYield,
            [this] { gate_.SetProfiler(RuntimeGate::Profiler::kInspect, true); });
  Keep();
  EXPECT_THAT(Summary(kSnapshot), HasSubstr("collected stopped:4"));
  EXPECT_EQ(Summary(kRecorder), "started stopped:4 0");
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk));
  EXPECT_EQ(runtime_.misuses, 0);
}

TEST_F(TapCollectTest, AProcessThatExitsWhileItCollectsLeavesAnEnd) {
  Hold(30'000);
  runtime_.Emit(0, 10'000);
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  Step();
  Keep();
  CallAsApp(RuntimeGate::Claim::kExit, [] {});
  Keep();
  EXPECT_THAT(Summary(kSnapshot), HasSubstr("stopped:3"));
  EXPECT_THAT(Summary(kRecorder), HasSubstr("stopped:3"));
}

TEST_F(TapCollectTest, AStopOfTheSnapshotLeavesTheRecorder) {
  Hold(30'000);
  runtime_.Emit(0, 30'000);
  agent_.Send(TapTestCollectPacket(kRecorder, 3, now_ns_ + kNsPerSecond));
  agent_.Send(TapTestStopPacket(3));
  agent_.Send(TapTestCollectPacket(kRecorder, kSnapshot));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kAccepted, TapResult::kOk, TapResult::kAccepted));
  agent_.Send(TapTestStopPacket(kSnapshot));
  Step();
  EXPECT_THAT(Answers(), ElementsAre(TapResult::kOk, TapResult::kOk));
  Keep();
  EXPECT_THAT(Summary(kSnapshot), HasSubstr("stopped:1:incomplete"));
  EXPECT_EQ(State(), TapState::kHolding);
}

TEST_F(TapCollectTest, AnAgentThatComesBackFindsTheRingsHeld) {
  Hold();
  runtime_.Emit(0, 20);
  agent_.Hang();
  Step();
  Advance(kNsPerSecond);
  Step();
  ASSERT_TRUE(agent_.Accept());
  EXPECT_EQ(agent_.hello().state, static_cast<uint32_t>(TapState::kHolding));
  EXPECT_EQ(agent_.hello().capture_id[0], kRecorder);
  Collect();
  EXPECT_EQ(Summary(kSnapshot), "collected stopped:7 20");
  EXPECT_EQ(runtime_.starts, 1);
}

}  // namespace
}  // namespace neurontrace::tap
