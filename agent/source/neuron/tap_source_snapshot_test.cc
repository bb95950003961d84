// SPDX-License-Identifier: Apache-2.0
// Goal: a snapshot is what the rings of a flight recorder held at its cut, and says how far back it
// reaches. Method: as tap_source_test.cc; the fake tap collects what a test tells it to.
#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMs = 1'000'000;

class TapSourceSnapshotTest : public TapSourceTest {
 protected:
  // A flight recorder holds the rings of a worker that has connected.
  void Hold() {
    Connect();
    CaptureSpec spec;
    spec.mode = CaptureMode::kFlightRecorder;
    source_->ApplyOrder(SourceOrder::Start(recorder_, spec, {}));
    const auto start = tap_.ReadCommand();
    ASSERT_TRUE(start);
    ASSERT_EQ(start->start.flags, kTapStartFlagHold);
    tap_.SetState(TapState::kHolding);
    tap_.realtime_ns = clock_.RealtimeNs();
    tap_.WriteStarted(recorder_);
    tap_.Answer(TapMessageType::kStart, TapResult::kOk, recorder_);
    Deliver();
    Pass(300);
  }
  CaptureSpec Spec(uint64_t last_ns = 0) const {
    CaptureSpec spec;
    spec.mode = CaptureMode::kSnapshot;
    spec.timing.flight_recorder = recorder_;
    spec.timing.last_ns = last_ns;
    return spec;
  }
  // The order, given and accepted; the cut is so far ahead.
  void Cut(uint64_t last_ns = 0, int64_t ms = 100) {
    source_->ApplyOrder(SourceOrder::Arm(capture_, Spec(last_ns), {}));
    EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
    cut_ns_ = clock_.RealtimeNs() + static_cast<uint64_t>(ms * 1'000'000);
    source_->ApplyOrder(SourceOrder::Begin(capture_, In(ms)));
    const auto collect = tap_.ReadCommand();
    ASSERT_TRUE(collect);
    EXPECT_EQ(collect->type, TapMessageType::kCollect);
    EXPECT_EQ(collect->capture_id, capture_);
    EXPECT_EQ(collect->recorder_id, recorder_);
    EXPECT_EQ(collect->at_ns, clock_.MonotonicNs() + static_cast<uint64_t>(ms * 1'000'000));
    tap_.Answer(TapMessageType::kCollect, TapResult::kAccepted, capture_);
    Deliver();
    Pass(static_cast<uint64_t>(ms));
    tap_.realtime_ns = clock_.RealtimeNs();
  }
  // Events of a core with these numbers, `step_ns` apart; the last so long before the cut.
  void Collected(uint32_t core, uint64_t first, uint64_t count, uint64_t step_ns,
                 uint64_t before_cut_ns = 0) {
    std::string json = R"({"events":[)";
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t ns = cut_ns_ - before_cut_ns - (count - 1 - i) * step_ns;
      json += std::string(i > 0 ? "," : "") + R"({"event_type":"nrt_execute","nc_idx":)" +
              std::to_string(core) + R"(,"nc_local_id":)" + std::to_string(first + i) +
              R"(,"timestamp_ns":)" + std::to_string(ns) + "}";
    }
    tap_.WriteDocument(json + "]}", capture_, core);
  }
  void EndCollection(TapStopReason reason = TapStopReason::kCollected, bool complete = true) {
    tap_.WriteStopped(capture_, reason, complete);
    tap_.Answer(TapMessageType::kCollect, TapResult::kOk, capture_);
    Deliver();
    Pass(600);
    sink_.StoreAll();
    Pass(300);
  }
  void ExpectRefused(CaptureObstacle obstacle) {
    EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
    EXPECT_EQ(status().obstacle, obstacle) << static_cast<int>(status().obstacle);
  }

  CaptureId recorder_ = *CaptureId::FromBytes("rrrrrrrrrrrrrrrR");
  uint64_t cut_ns_ = 0;
};

TEST_F(TapSourceSnapshotTest, CollectsRingsAndEndsByItself) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Pass(300);
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_TRUE(status().begun_as_planned);
  Collected(0, 700, 10, kMs);  // 0 to 699 were overwritten: no loss
  Collected(0, 712, 3, kMs);   // 710 and 711 were while it was read: lost
  EndCollection();
  EXPECT_TRUE(source_->IsFinished(capture_)) << "without a stop";
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_stored, 13u);
  EXPECT_EQ(LostEvents(LossPlace::kRuntimeRing), 2u);
  EXPECT_EQ(listener_.statuses[recorder_].state, CaptureWorkerState::kRecording);
  EXPECT_FALSE(source_->IsFinished(recorder_));
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos());
}

TEST_F(TapSourceSnapshotTest, ExcludesEventsOutsideSnapshotWindow) {
  Hold();
  Pass(30'000);
  Cut(20'000 * kMs);
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 31, 1'000 * kMs);                  // from 30 s before the cut to it
  Collected(0, 731, 1, 0, static_cast<uint64_t>(-5));  // 5 ns behind it
  EndCollection();
  EXPECT_EQ(status().events_read, 21u);
  EXPECT_THAT(sink_.Events(), SizeIs(21));
  EXPECT_THAT(sink_.Losses(), IsEmpty());
  EXPECT_EQ(status().reaches_back_ns, 20'000 * kMs);
}

TEST_F(TapSourceSnapshotTest, ReportsReachOfWrappedRing) {
  Hold();
  Pass(30'000);
  Cut(20'000 * kMs);
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 9, 1'000 * kMs, 200 * kMs);
  Collected(1, 0, 2, 1'000 * kMs);  // a quiet core, with nothing missing
  EndCollection();
  EXPECT_EQ(status().reaches_back_ns, 8'200 * kMs);
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
}

TEST_F(TapSourceSnapshotTest, RingsWithNothingInThemAreASnapshotToo) {
  Hold();
  Pass(5'000);
  Cut(2'000 * kMs);
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  EndCollection();
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_read, 0u);
  EXPECT_EQ(status().reaches_back_ns, 2'000 * kMs);
}

TEST_F(TapSourceSnapshotTest, WithoutAFlightRecorderItIsNotArmed) {
  Connect();
  source_->ApplyOrder(SourceOrder::Arm(capture_, Spec(), {}));
  ExpectRefused(CaptureObstacle::kNotArmed);
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(10)));
  const auto collect = tap_.ReadCommand();
  ASSERT_TRUE(collect);
  tap_.Answer(TapMessageType::kCollect, TapResult::kNothingHeld, capture_, "not held");
  Deliver();
  ExpectRefused(CaptureObstacle::kNotArmed);
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceSnapshotTest, NamesProfilerStartedMeanwhile) {
  Hold();
  source_->ApplyOrder(SourceOrder::Arm(capture_, Spec(), {}));
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
  tap_.SetState(TapState::kBusyOtherProfiler);
  tap_.WriteStopped(recorder_, TapStopReason::kYielded);
  tap_.Answer(TapMessageType::kStart, TapResult::kNone, recorder_);
  Deliver();
  ExpectRefused(CaptureObstacle::kOtherProfiler);
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(10)));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kCollect, TapResult::kNothingHeld, capture_, "given up");
  Deliver();
  ExpectRefused(CaptureObstacle::kOtherProfiler);
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceSnapshotTest, AProfilerThatStartsBeforeTheCutLeavesNothing) {
  Hold();
  Cut();
  tap_.SetState(TapState::kBusyOtherProfiler);
  tap_.Answer(TapMessageType::kCollect, TapResult::kNothingHeld, capture_, "given up");
  Deliver();
  ExpectRefused(CaptureObstacle::kOtherProfiler);
  EXPECT_THAT(status().detail, HasSubstr("given up"));
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceSnapshotTest, KeepsDataOfWorkerExitingDuringCollection) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 5, 10, kMs);
  tap_.WriteStopped(capture_, TapStopReason::kProcessExit, false);
  tap_.WriteStopped(recorder_, TapStopReason::kProcessExit);
  tap_.SetState(TapState::kExited);
  tap_.HangUp();
  Deliver();
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().events_stored, 10u);
  ASSERT_THAT(sink_.Losses(), SizeIs(1));
  EXPECT_THAT(sink_.Losses()[0].detail, HasSubstr("incomplete"));
}

TEST_F(TapSourceSnapshotTest, AWorkerThatIsKilledDuringCollectionIsLost) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 5, 10, kMs);
  tap_.HangUp();
  SetProcessAlive(false);
  Deliver();
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kLost);
  EXPECT_EQ(status().events_stored, 10u);
}

TEST_F(TapSourceSnapshotTest, ATapThatNeverAnswersIsNotWaitedForForEver) {
  Hold();
  Cut();
  Pass(WorkerCapture::kCollectPatienceNs / kMs + 500);
  ExpectRefused(CaptureObstacle::kNoAnswer);
  EXPECT_THAT(status().detail, HasSubstr("did not answer"));
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_THAT(sink_.entries, IsEmpty());
}

TEST_F(TapSourceSnapshotTest, ATapThatFallsSilentWhileItCollectsLeavesALossOfUnknownSize) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 10, kMs);
  Pass(WorkerCapture::kCollectPatienceNs / kMs + 1'000);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(sink_.Losses().back().detail, HasSubstr("did not answer COLLECT"));
}

TEST_F(TapSourceSnapshotTest, TheNextAgentFindsTheRingsHeldAndTheSnapshotHalfRead) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 10, kMs);
  Pass(1'000);
  ASSERT_FALSE(sink_.entries.empty());
  sink_.StoreAll();
  Pass(300);
  Collected(0, 710, 5, kMs);
  MakeSource();
  Connect(recorder_);
  CaptureSpec recorder;
  recorder.mode = CaptureMode::kFlightRecorder;
  source_->ApplyOrder(SourceOrder::Continue(recorder_, recorder, {}));
  EXPECT_EQ(listener_.statuses[recorder_].state, CaptureWorkerState::kRecording);
  EXPECT_FALSE(tap_.ReadCommand()) << "it holds on";
  source_->ApplyOrder(SourceOrder::Join(recorder_, recorder, {}, In(-9'000)));
  ASSERT_TRUE(tap_.ReadCommand());
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, recorder_);
  Deliver();
  const int64_t ago_ms = static_cast<int64_t>((clock_.RealtimeNs() - cut_ns_) / kMs);
  source_->ApplyOrder(SourceOrder::Join(capture_, Spec(), sink_.Cursors(), In(-ago_ms)));
  const auto collect = tap_.ReadCommand();
  ASSERT_TRUE(collect) << "the tap knows whether it has done that";
  EXPECT_EQ(collect->type, TapMessageType::kCollect);
  EndCollection();
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(sink_.Events(true), SizeIs(15));
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(TapSourceSnapshotTest, AgentAfterLongAbsenceTakesNoOtherEvents) {
  Hold();
  Pass(200'000);
  source_->ApplyOrder(SourceOrder::Join(capture_, Spec(), {}, In(-120'000)));
  EXPECT_FALSE(tap_.ReadCommand());
  ExpectRefused(CaptureObstacle::kAgentLost);
  EXPECT_TRUE(source_->IsFinished(capture_));
}

TEST_F(TapSourceSnapshotTest, AgentAfterLongAbsenceTakesCollectedEvents) {
  Hold();
  Cut();
  source_.reset();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 10, kMs);
  tap_.WriteStopped(capture_, TapStopReason::kCollected);
  Pass(120'000);
  MakeSource();
  Connect(recorder_);
  CaptureSpec recorder;
  recorder.mode = CaptureMode::kFlightRecorder;
  source_->ApplyOrder(SourceOrder::Join(recorder_, recorder, {}, In(-200'000)));
  source_->ApplyOrder(SourceOrder::Join(capture_, Spec(), {}, In(-120'000)));
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_stored, 10u);
  EXPECT_THAT(sink_.Losses(), IsEmpty());
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos());
}

TEST_F(TapSourceSnapshotTest, CountsLateSnapshotDataWithoutStoringIt) {
  Hold();
  Cut();
  tap_.Answer(TapMessageType::kCollect, TapResult::kNothingHeld, capture_, "not held");
  Deliver();
  ExpectRefused(CaptureObstacle::kNotArmed);
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 700, 10, kMs);
  tap_.WriteDocument("{ nonsense", capture_, 1);
  tap_.WriteLoss({.refused_documents = 1, .refused_events = 4, .refused_ids_end = 900}, capture_,
                 2);
  tap_.WriteStopped(capture_, TapStopReason::kCollected, false);
  Pass(2'000);
  ExpectRefused(CaptureObstacle::kNotArmed);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(metrics_.events_after_end.load(), 10u);
  EXPECT_THAT(sink_.entries, IsEmpty());
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos()) << "the ring is free for others";
}

TEST_F(TapSourceSnapshotTest, TwoSnapshotsOneAfterTheOther) {
  Hold();
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 0, 10, kMs);
  EndCollection();
  source_->Forget(capture_);
  tap_.ReadCommand();
  const uint64_t first_cut_ns = tap_.realtime_ns;
  capture_ = other_;
  Pass(3'000);
  Cut();
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 10, 4, kMs);
  EndCollection();
  EXPECT_EQ(status().events_read, 4u);
  EXPECT_EQ(status().reaches_back_ns, cut_ns_ - first_cut_ns);
  EXPECT_THAT(sink_.Losses(), IsEmpty());
}

TEST_F(TapSourceSnapshotTest, StopDoesNotAffectSnapshot) {
  Hold();
  Cut();
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_FALSE(tap_.ReadCommand());
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 3, 2, kMs);
  EndCollection();
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_stored, 2u);
}

TEST_F(TapSourceSnapshotTest, OneTooManyIsRefusedAndTheOthersWaitOn) {
  Hold();
  source_->ApplyOrder(SourceOrder::Arm(other_, Spec(), {}));
  source_->ApplyOrder(SourceOrder::Begin(other_, In(50)));
  ASSERT_TRUE(tap_.ReadCommand());
  Cut();
  tap_.Answer(TapMessageType::kCollect, TapResult::kAnotherCapture, other_, "too many wait");
  Deliver();
  EXPECT_EQ(listener_.statuses[other_].state, CaptureWorkerState::kRefused);
  EXPECT_EQ(listener_.statuses[other_].obstacle, CaptureObstacle::kOtherCapture);
  tap_.WriteStarted(capture_, kTapRecordFlagCollected);
  Collected(0, 0, 3, kMs);
  EndCollection();
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(sink_.Events(), SizeIs(3));
}

// Nobody knows where the cut lies on this host's clocks: it is over, and nothing newer is taken.
TEST_F(TapSourceSnapshotTest, DoesNotRetakeUnnamedCut) {
  Hold();
  Pass(60'000);
  source_->ApplyOrder(
      SourceOrder::Join(capture_, Spec(), {}, {.reference_ns = clock_.RealtimeNs() - 1'000 * kMs}));
  Pass(300);
  EXPECT_FALSE(tap_.ReadCommand());
}

}  // namespace
}  // namespace neurontrace
