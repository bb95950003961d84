// SPDX-License-Identifier: Apache-2.0
// Goal: captures are armed, begun and stopped at a moment, and reports state how well that was
// kept. Method: as tap_source_test.cc; what a tap does at its time is played by the fake.
#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TapSourceBeginTest : public TapSourceTest {
 protected:
  void Arm(const CaptureSpec& spec = {}) {
    source_->ApplyOrder(SourceOrder::Arm(capture_, spec, {}));
  }
  void ExpectRefused(CaptureObstacle obstacle, const std::string& words) {
    EXPECT_EQ(status().state, CaptureWorkerState::kRefused);
    EXPECT_EQ(status().obstacle, obstacle) << static_cast<int>(status().obstacle);
    EXPECT_THAT(status().detail, HasSubstr(words));
  }
  void SendState(TapState state, const CaptureId& capture = CaptureId()) {
    tap_.SetState(state);
    tap_.Answer(TapMessageType::kStart, TapResult::kNone, capture);
    Deliver();
  }
  FakeTap::Command Command() {
    auto command = tap_.ReadCommand();
    EXPECT_TRUE(command);
    return command.value_or(FakeTap::Command{});
  }
  // The tap's trace begins now.
  void Started(uint16_t flags = 0) {
    tap_.realtime_ns = clock_.RealtimeNs();
    tap_.SetState(TapState::kStreaming);
    tap_.WriteStarted(capture_, flags);
    tap_.Answer(TapMessageType::kStart, TapResult::kNone, capture_);
    Deliver();
  }
};

TEST_F(TapSourceBeginTest, ArmingReportsStateWithoutContactingTap) {
  Connect();
  Arm();
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
  EXPECT_EQ(status().obstacle, CaptureObstacle::kNone);
  Pass(3'000);
  EXPECT_FALSE(tap_.ReadCommand());
  EXPECT_THAT(sink_.entries, IsEmpty());
}

TEST_F(TapSourceBeginTest, EveryObstacleIsNamed) {
  struct Row {
    TapState state;
    CaptureObstacle obstacle;
    const char* words;
  };
  for (const Row& row :
       {Row{TapState::kBusyOtherProfiler, CaptureObstacle::kOtherProfiler, "another profiler"},
        Row{TapState::kRuntimeTooOld, CaptureObstacle::kRuntimeTooOld, "too old"},
        Row{TapState::kNotInitialised, CaptureObstacle::kNotInitialised, "not initialised"},
        Row{TapState::kClosed, CaptureObstacle::kNotInitialised, "closed"},
        Row{TapState::kExited, CaptureObstacle::kEnded, "ending"},
        Row{TapState::kStartFailed, CaptureObstacle::kRuntimeRefused, "refused"}}) {
    SCOPED_TRACE(row.words);
    MakeSource();
    tap_.SetState(row.state);
    Connect();
    Arm();
    ExpectRefused(row.obstacle, row.words);
    EXPECT_FALSE(tap_.ReadCommand());
    tap_.HangUp();
    Deliver();
  }
}

TEST_F(TapSourceBeginTest, RefusesRuntimeLackingSelectedEventType) {
  Connect();
  CaptureSpec spec;
  spec.filter.event_types = {"no_such_type"};
  Arm(spec);
  ExpectRefused(CaptureObstacle::kNoEventType, "event types");
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  EXPECT_FALSE(tap_.ReadCommand());
  ExpectRefused(CaptureObstacle::kNoEventType, "event types");
}

TEST_F(TapSourceBeginTest, DisconnectedTapDoesNotAnswer) {
  Connect();
  tap_.HangUp();
  Deliver();
  Arm();
  ExpectRefused(CaptureObstacle::kNoAnswer, "not connected");
}

TEST_F(TapSourceBeginTest, ArmedStateFollowsTapUntilStart) {
  Connect();
  Arm();
  SendState(TapState::kBusyOtherProfiler);
  ExpectRefused(CaptureObstacle::kOtherProfiler, "another profiler");
  SendState(TapState::kIdle);
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
  EXPECT_FALSE(tap_.ReadCommand());
}

TEST_F(TapSourceBeginTest, BeginsAtGivenTimeAndReportsOffset) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  const FakeTap::Command start = Command();
  EXPECT_EQ(start.type, TapMessageType::kStart);
  EXPECT_EQ(start.at_ns, clock_.MonotonicNs() + 100'000'000);
  EXPECT_EQ(start.start.flags, 0u);
  tap_.Answer(TapMessageType::kStart, TapResult::kAccepted, capture_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed) << "its time has not come";
  Pass(103);
  Started();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_EQ(status().begun_realtime_ns, clock_.RealtimeNs());
  EXPECT_TRUE(status().begun_as_planned);
  EXPECT_EQ(status().begin_offset_ns, 3'000'000);
  EXPECT_FALSE(status().joined_late);
}

TEST_F(TapSourceBeginTest, ATraceThatBeginsEarlyHasANegativeOffset) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Pass(99);
  Started();
  EXPECT_EQ(status().begin_offset_ns, -1'000'000);
  EXPECT_TRUE(status().begun_as_planned);
}

TEST_F(TapSourceBeginTest, PastOrMissingTimeStartsImmediately) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(-30)));
  EXPECT_EQ(Command().at_ns, 0u);
  Started();
  EXPECT_EQ(status().begin_offset_ns, 30'000'000);
  EXPECT_TRUE(status().begun_as_planned);
  MakeSource();
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, CaptureBegin{}));
  EXPECT_EQ(Command().at_ns, 0u);
  Started();
  Pass(300);
  EXPECT_FALSE(status().begun_as_planned) << "no moment was named";
  EXPECT_EQ(status().begin_offset_ns, 0);
  EXPECT_GT(status().begun_realtime_ns, 0u);
}

TEST_F(TapSourceBeginTest, AProfilerThatEndsAfterTheMomentMakesItsWorkerLate) {
  tap_.SetState(TapState::kBusyOtherProfiler);
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  EXPECT_EQ(Command().type, TapMessageType::kStart) << "kept by the tap until it is free";
  tap_.Answer(TapMessageType::kStart, TapResult::kAccepted, capture_);
  Deliver();
  ExpectRefused(CaptureObstacle::kOtherProfiler, "another profiler");
  Pass(5'000);
  Started();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_EQ(status().obstacle, CaptureObstacle::kNone);
  EXPECT_TRUE(status().joined_late);
  EXPECT_FALSE(status().begun_as_planned);
  EXPECT_EQ(status().begun_realtime_ns, clock_.RealtimeNs());
}

TEST_F(TapSourceBeginTest, AWorkerOrAnAgentThatComesLaterIsLate) {
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Pass(1'000);
  Connect();
  EXPECT_EQ(Command().at_ns, 0u);
  Started();
  EXPECT_TRUE(status().joined_late);
  tap_.HangUp();
  Deliver();
  MakeSource();
  Connect();
  source_->ApplyOrder(SourceOrder::Join(other_, {}, {}, In(-10'000)));
  EXPECT_EQ(Command().at_ns, 0u);
  tap_.WriteStarted(other_);
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, other_);
  Deliver();
  Pass(2'000);  // records of a capture unknown to this agent come first
  EXPECT_TRUE(listener_.statuses[other_].joined_late);
}

TEST_F(TapSourceBeginTest, AWorkerThatComesBeforeTheMomentIsNotLate) {
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Pass(50);
  Connect();
  EXPECT_EQ(Command().at_ns, clock_.MonotonicNs() + 50'000'000);
  Pass(50);
  Started();
  EXPECT_TRUE(status().begun_as_planned);
  EXPECT_FALSE(status().joined_late);
}

TEST_F(TapSourceBeginTest, AConnectionLostBetweenArmingAndBeginningTakesTheOrderAfterIt) {
  Connect();
  Arm();
  tap_.HangUp();
  Deliver();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(500)));
  Pass(200);
  Connect();
  const FakeTap::Command start = Command();
  EXPECT_EQ(start.type, TapMessageType::kStart);
  EXPECT_EQ(start.at_ns, clock_.MonotonicNs() + 300'000'000);
}

TEST_F(TapSourceBeginTest, StopsAtTheMomentNamed) {
  Connect();
  StartAndRecord();
  source_->Stop(capture_, In(100).host_raw_ns);
  const FakeTap::Command stop = Command();
  EXPECT_EQ(stop.type, TapMessageType::kStop);
  EXPECT_EQ(stop.at_ns, clock_.MonotonicNs() + 100'000'000);
  tap_.Answer(TapMessageType::kStop, TapResult::kAccepted, capture_);
  Deliver();
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  Pass(300);
  EXPECT_NE(status().state, CaptureWorkerState::kComplete) << "accepted is not done";
  tap_.WriteDocument(Document(0, 2, 2), capture_);
  tap_.WriteStopped(capture_, TapStopReason::kCommand);
  tap_.SetState(TapState::kIdle);
  tap_.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
  Deliver();
  Pass(300);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_EQ(status().events_stored, 4u);
  EXPECT_GT(status().bytes_read, 0u);
}

TEST_F(TapSourceBeginTest, AStopBeforeTheBeginningEndsWhatWasArmed) {
  Connect();
  Arm();
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(Command().type, TapMessageType::kStop);
  tap_.Answer(TapMessageType::kStop, TapResult::kNotRunning, capture_);
  Deliver();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(status().detail, HasSubstr("before it began"));
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(10)));
  EXPECT_FALSE(tap_.ReadCommand());
}

TEST_F(TapSourceBeginTest, FrozenWorkerTookNoPart) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Pass(5'000);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_NE(status().detail, "stopped before it began");
  Pass(WorkerCapture::kStopPatienceNs / 1'000'000 + 500);
  EXPECT_TRUE(source_->IsFinished(capture_));
  ExpectRefused(CaptureObstacle::kNoAnswer, "did not confirm START");
  EXPECT_THAT(sink_.entries, IsEmpty());
}

TEST_F(TapSourceBeginTest, UndeliveredOrderIsNoPart) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Command();
  Pass(5'000);
  source_->Stop(capture_, Source::kStopNow);
  Command();
  tap_.Answer(TapMessageType::kStop, TapResult::kNotRunning, capture_);
  Deliver();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  ExpectRefused(CaptureObstacle::kNoAnswer, "did not confirm START");
}

TEST_F(TapSourceBeginTest, ATapThatIsAwayFromArmingToTheEndTookNoPart) {
  Connect();
  Arm();
  tap_.HangUp();
  Deliver();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(100)));
  Pass(5'000);
  source_->Stop(capture_, Source::kStopNow);
  Pass(WorkerCapture::kStopPatienceNs / 1'000'000 + 500);
  EXPECT_TRUE(source_->IsFinished(capture_));
  ExpectRefused(CaptureObstacle::kNoAnswer, "not connected");
}

TEST_F(TapSourceBeginTest, OneThatIsFrozenAndStoppedBeforeItsMomentMissesNothing) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(5'000)));
  Pass(1'000);
  source_->Stop(capture_, Source::kStopNow);
  Pass(WorkerCapture::kStopPatienceNs / 1'000'000 + 500);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(status().detail, HasSubstr("before it began"));
}

TEST_F(TapSourceBeginTest, AStopRightBehindTheBeginningIsAPart) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Command();
  source_->Stop(capture_, Source::kStopNow);
  Command();
  tap_.Answer(TapMessageType::kStart, TapResult::kOk, capture_);
  tap_.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
  Deliver();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete) << status().detail;
}

TEST_F(TapSourceBeginTest, AnAnswerThatIsReadAfterTheMomentIsNoObstacle) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(20)));
  Command();
  tap_.Answer(TapMessageType::kStart, TapResult::kAccepted, capture_);
  Pass(25);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kStarting);
  EXPECT_EQ(status().obstacle, CaptureObstacle::kNone);
  SendState(TapState::kIdle, capture_);
  EXPECT_EQ(status().state, CaptureWorkerState::kStarting);
  Started();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_TRUE(status().begun_as_planned);
  EXPECT_FALSE(status().joined_late);
  EXPECT_EQ(status().begin_offset_ns, 5'000'000);
}

TEST_F(TapSourceBeginTest, RecordedPartIsNotRefusedLater) {
  Connect();
  StartAndRecord();
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  tap_.HangUp();
  Deliver();
  tap_.SetState(TapState::kBusyOtherProfiler);
  Connect();
  EXPECT_EQ(Command().type, TapMessageType::kStart);
  tap_.Answer(TapMessageType::kStart, TapResult::kAccepted, capture_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_EQ(status().obstacle, CaptureObstacle::kNone);
  EXPECT_THAT(status().detail, HasSubstr("another profiler"));
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
}

TEST_F(TapSourceBeginTest, RecordedPartIsNotRefusedForOtherCapture) {
  Connect();
  StartAndRecord();
  tap_.HangUp();
  Deliver();
  Connect();
  Command();
  tap_.Answer(TapMessageType::kStart, TapResult::kAnotherCapture, other_);
  Deliver();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_THAT(status().detail, HasSubstr(other_.ToString()));
}

TEST_F(TapSourceBeginTest, TheSecondCaptureOfAWorkerIsRefused) {
  Connect();
  StartAndRecord();
  source_->ApplyOrder(SourceOrder::Arm(other_, {}, {}));
  source_->ApplyOrder(SourceOrder::Begin(other_, In(10)));
  EXPECT_EQ(Command().capture_id, other_);
  tap_.Answer(TapMessageType::kStart, TapResult::kAnotherCapture, capture_);
  Deliver();
  EXPECT_EQ(listener_.statuses[other_].state, CaptureWorkerState::kRefused);
  EXPECT_EQ(listener_.statuses[other_].obstacle, CaptureObstacle::kOtherCapture);
  EXPECT_THAT(listener_.statuses[other_].detail, HasSubstr(capture_.ToString()));
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
}

TEST_F(TapSourceBeginTest, RefusesToArmBusyWorker) {
  Connect();
  StartAndRecord();
  source_->ApplyOrder(SourceOrder::Arm(other_, {}, {}));
  EXPECT_EQ(listener_.statuses[other_].state, CaptureWorkerState::kRefused);
  EXPECT_EQ(listener_.statuses[other_].obstacle, CaptureObstacle::kOtherCapture);
}

TEST_F(TapSourceBeginTest, AWorkerIsPromisedToOneCaptureAtATime) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Arm(other_, {}, {}));
  EXPECT_EQ(listener_.statuses[other_].state, CaptureWorkerState::kRefused);
  EXPECT_EQ(listener_.statuses[other_].obstacle, CaptureObstacle::kOtherCapture);
  EXPECT_THAT(listener_.statuses[other_].detail, HasSubstr(capture_.ToString()));
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
  source_->Stop(capture_, Source::kStopNow);
  source_->ApplyOrder(SourceOrder::Arm(other_, {}, {}));
  EXPECT_EQ(listener_.statuses[other_].state, CaptureWorkerState::kArmed) << "it is free again";
}

TEST_F(TapSourceBeginTest, ReturningAgentFindsStartedCaptureAndIsNotLate) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(0)));
  Command();
  Started();
  MakeSource();
  Connect(capture_);
  source_->ApplyOrder(SourceOrder::Join(capture_, {}, {}, In(-5'000)));
  Pass(1'500);
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_FALSE(status().joined_late);
}

TEST_F(TapSourceBeginTest, ResumedAgentRearmsArmedCapture) {
  Connect();
  Arm();
  MakeSource();
  listener_.statuses.clear();
  source_->ApplyOrder(SourceOrder::Continue(capture_, {}, {}));
  Connect();
  EXPECT_TRUE(listener_.statuses.empty());
  Arm();
  EXPECT_EQ(status().state, CaptureWorkerState::kArmed);
  Pass(3'000);
  EXPECT_FALSE(tap_.ReadCommand()) << "nobody has said when it begins";
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(0)));
  EXPECT_EQ(Command().type, TapMessageType::kStart);
}

TEST_F(TapSourceBeginTest, TraceRestartUnderNextAgentIsNotTheBegin) {
  Connect();
  Arm();
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(0)));
  Command();
  Started();
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  Pass(2'000);
  sink_.StoreAll();
  Pass(300);
  ASSERT_EQ(tap_.read_pos(), tap_.write_pos());
  MakeSource();
  Connect();
  source_->ApplyOrder(SourceOrder::Join(capture_, {}, sink_.Cursors(), In(-60'000)));
  Command();
  Started();
  EXPECT_EQ(status().state, CaptureWorkerState::kRecording);
  EXPECT_EQ(status().begun_realtime_ns, 0u);
  EXPECT_FALSE(status().begun_as_planned);
}

TEST_F(TapSourceBeginTest, APreviewCountsAndSendsNothing) {
  Connect();
  CaptureSpec spec;
  spec.mode = CaptureMode::kPreview;
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  EXPECT_EQ(Command().type, TapMessageType::kStart);
  Started();
  tap_.WriteDocument(Document(0, 0, 30), capture_);
  Pass(1'500);
  EXPECT_EQ(status().events_read, 30u);
  EXPECT_GT(status().bytes_read, 0u);
  EXPECT_EQ(status().events_stored, 0u);
  EXPECT_EQ(tap_.read_pos(), tap_.write_pos()) << "nothing is kept for it";
  source_->Stop(capture_, Source::kStopNow);
  AnswerStop();
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_EQ(status().state, CaptureWorkerState::kComplete);
  EXPECT_THAT(sink_.entries, IsEmpty());
}

}  // namespace
}  // namespace neurontrace
