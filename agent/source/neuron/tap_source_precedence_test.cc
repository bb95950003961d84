// SPDX-License-Identifier: Apache-2.0
// Goal: a standing capture is suspended in a worker for another one, until that is over. Method: as
// tap_source_test.cc.
#include "agent/source/neuron/capture/suspension_tracker.h"
#include "agent/source/neuron/tap_source.h"
#include "agent/source/neuron/tap_source_fixture.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class TapSourcePrecedenceTest : public TapSourceTest {
 protected:
  static CaptureSpec Spec(CaptureMode mode) {
    CaptureSpec spec;
    spec.mode = mode;
    return spec;
  }
  // The command that the tap got, as text; it is answered as a tap would.
  std::string Obey() {
    std::string told;
    while (const auto command = tap_.ReadCommand()) {
      tap_.realtime_ns = clock_.RealtimeNs();
      const bool start = command->type == TapMessageType::kStart;
      told += std::string(told.empty() ? "" : ", ") + (start ? "start " : "stop ") +
              Name(command->capture_id) +
              (start && command->start.flags == kTapStartFlagHold ? " holding" : "");
      TapResult result = TapResult::kOk;
      if (start && (running_.empty() || running_ == command->capture_id)) {
        running_ = command->capture_id;
        tap_.SetState(command->start.flags == kTapStartFlagHold ? TapState::kHolding
                                                                : TapState::kStreaming);
        tap_.WriteStarted(running_);
      } else if (!start && running_ == command->capture_id) {
        tap_.WriteStopped(running_, TapStopReason::kCommand);
        running_ = CaptureId();
        tap_.SetState(TapState::kIdle);
      } else {
        result = TapResult::kAnotherCapture;
      }
      tap_.Answer(command->type, result, result == TapResult::kOk ? command->capture_id : running_);
      Deliver();
    }
    return told;
  }
  std::string Name(const CaptureId& id) const {
    return id == standing_ ? "standing" : id == capture_ ? "capture" : "other";
  }
  // Returns what the store would keep of the suspensions of `standing_`.
  std::vector<Suspension> SuspendedFor(const CaptureId& other) {
    source_->Flush();
    std::vector<Suspension> reports;
    for (const Suspension& suspension : sink_.Suspensions()) {
      if (suspension.other == other) reports.push_back(suspension);
    }
    return reports;
  }
  static uint64_t First(const std::vector<Suspension>& reports) {
    return std::ranges::min_element(reports, {}, &Suspension::begin_ns)->begin_ns;
  }
  static uint64_t Last(const std::vector<Suspension>& reports) {
    return std::ranges::max_element(reports, {}, &Suspension::end_ns)->end_ns;
  }
  CaptureWorkerStatus StatusOf(const CaptureId& id) { return listener_.statuses[id]; }

  CaptureId standing_ = *CaptureId::FromBytes("sssssssssssssssS");
  CaptureId running_;
};

TEST_F(TapSourcePrecedenceTest, AFlightRecorderIsSuspendedAndComesBack) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  EXPECT_EQ(Obey(), "start standing holding");
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kRecording);
  EXPECT_EQ(listener_.workers.begin()->second.tap_capture, CaptureId())
      << "told with the next tick";
  Pass(300);
  EXPECT_EQ(listener_.workers.begin()->second.tap_capture, standing_);

  source_->ApplyOrder(SourceOrder::Arm(capture_, {}, {}));
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kArmed) << "the other would be suspended";
  EXPECT_EQ(Obey(), "") << "but not before the other one begins";
  source_->ApplyOrder(SourceOrder::Begin(capture_, In(50)));
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);
  EXPECT_EQ(StatusOf(standing_).obstacle, CaptureObstacle::kOtherCapture);
  EXPECT_THAT(StatusOf(standing_).detail, HasSubstr(capture_.ToString()));
  EXPECT_EQ(Obey(), "stop standing, start capture");
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kRecording);
  Pass(2'000);
  EXPECT_EQ(Obey(), "");
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);

  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop capture, start standing holding");
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kRecording);
  Pass(600);
  EXPECT_TRUE(source_->IsFinished(capture_));
  EXPECT_FALSE(source_->IsFinished(standing_));
}

TEST_F(TapSourcePrecedenceTest, AContinuousCaptureComesBeforeAFlightRecorderAndBehindAPreview) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  Obey();
  source_->ApplyOrder(SourceOrder::Start(capture_, Spec(CaptureMode::kContinuous), {}));
  EXPECT_EQ(Obey(), "stop standing, start capture");
  tap_.WriteDocument(Document(0, 0, 3), capture_);
  source_->ApplyOrder(SourceOrder::Start(other_, Spec(CaptureMode::kPreview), {}));
  EXPECT_EQ(Obey(), "stop capture, start other");
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kSuspended);
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);
  source_->Stop(other_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop other, start capture");
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);
  tap_.WriteDocument(Document(0, 0, 2), capture_);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop capture, start standing holding");
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kComplete);
  EXPECT_EQ(StatusOf(capture_).events_stored, 5u) << "both runs, and no loss between them";
  EXPECT_EQ(StatusOf(capture_).events_lost, 0u);
}

TEST_F(TapSourcePrecedenceTest, OneThatBeginsWhileAnotherRunsIsSuspendedFromTheFirst) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Obey();
  source_->ApplyOrder(SourceOrder::Arm(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  source_->ApplyOrder(SourceOrder::Begin(standing_, In(10)));
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);
  EXPECT_EQ(Obey(), "");
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop capture, start standing holding");
}

TEST_F(TapSourcePrecedenceTest, AStopWhileItIsSuspendedEndsIt) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  Obey();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Obey();
  source_->Stop(standing_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop standing");
  Pass(300);
  EXPECT_TRUE(source_->IsFinished(standing_));
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kComplete);
  EXPECT_THAT(StatusOf(standing_).detail, HasSubstr("was suspended for capture"));
  EXPECT_THAT(StatusOf(standing_).detail, HasSubstr(capture_.ToString()));
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kRecording);
}

TEST_F(TapSourcePrecedenceTest, ReportsSuspensionOfFlightRecorderToATapThatWasAway) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  Obey();
  tap_.HangUp();
  Deliver();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kSuspended);
  Connect(standing_);
  EXPECT_EQ(Obey(), "stop standing, start capture");
  EXPECT_EQ(StatusOf(capture_).state, CaptureWorkerState::kRecording);
  source_->Stop(capture_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop capture, start standing holding");
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kRecording);
}

TEST_F(TapSourcePrecedenceTest, CaptureThatRecordsNothingSuspendsNothing) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  Obey();
  CaptureSpec spec;
  spec.filter.event_types = {"no_such_type"};
  source_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  Pass(300);
  source_->ApplyOrder(SourceOrder::Start(other_, spec, {}));
  Pass(300);
  Obey();
  EXPECT_EQ(StatusOf(capture_).obstacle, CaptureObstacle::kNoEventType);
  EXPECT_EQ(running_, standing_);
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kRecording);
}

TEST_F(TapSourcePrecedenceTest, ACaptureThatIsForgottenGivesTheTapBack) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kFlightRecorder), {}));
  Obey();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Obey();
  source_->Forget(capture_);
  EXPECT_EQ(Obey(), "stop capture, start standing holding");
}

// From the trace's end to the next one's beginning, by the tap; while it continues, until now.
TEST_F(TapSourcePrecedenceTest, ContinuousCaptureReportsSuspension) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kContinuous), {}));
  Obey();
  tap_.WriteDocument(Document(0, 0, 3), standing_);
  Pass(1'000);
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Pass(30);
  const uint64_t from_ns = clock_.RealtimeNs();
  EXPECT_EQ(Obey(), "stop standing, start capture");
  Pass(6'000);
  ASSERT_FALSE(SuspendedFor(capture_).empty());
  EXPECT_EQ(First(SuspendedFor(capture_)), from_ns);
  EXPECT_GE(Last(SuspendedFor(capture_)),
            from_ns + 6'000'000'000 - SuspensionTracker::kReportIntervalNs);
  Pass(1'500);
  source_->Stop(capture_, Source::kStopNow);
  Pass(20);
  const uint64_t to_ns = clock_.RealtimeNs();
  EXPECT_EQ(Obey(), "stop capture, start standing");
  tap_.WriteDocument(Document(0, 0, 2), standing_);
  Pass(3'000);
  EXPECT_EQ(First(SuspendedFor(capture_)), from_ns);
  EXPECT_EQ(Last(SuspendedFor(capture_)), to_ns) << "and not a moment later";
  EXPECT_EQ(StatusOf(standing_).events_lost, 0u);
  source_->Stop(standing_, Source::kStopNow);
  Obey();
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kComplete);
  EXPECT_EQ(StatusOf(standing_).events_stored, 5u);
  EXPECT_EQ(Last(SuspendedFor(capture_)), to_ns);
}

TEST_F(TapSourcePrecedenceTest, CaptureEndedWhileSuspendedReportsItNeverRecorded) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Obey();
  const uint64_t from_ns = clock_.RealtimeNs();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kContinuous), {}));
  Pass(1'000);
  source_->Stop(standing_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop standing");
  Pass(600);
  sink_.StoreAll();
  Pass(300);
  EXPECT_EQ(StatusOf(standing_).state, CaptureWorkerState::kComplete);
  EXPECT_THAT(StatusOf(standing_).detail,
              HasSubstr("was suspended for capture " + capture_.ToString()));
  ASSERT_FALSE(SuspendedFor(capture_).empty());
  EXPECT_EQ(First(SuspendedFor(capture_)), from_ns);
  EXPECT_GE(Last(SuspendedFor(capture_)), from_ns + 1'000'000'000);
}

TEST_F(TapSourcePrecedenceTest, ReportsEachSuspendingCapture) {
  Connect();
  source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kContinuous), {}));
  Obey();
  source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  const uint64_t from_ns = clock_.RealtimeNs();
  Obey();
  Pass(3'000);
  source_->ApplyOrder(SourceOrder::Start(other_, Spec(CaptureMode::kPreview), {}));
  source_->Stop(capture_, Source::kStopNow);
  Obey();
  EXPECT_THAT(StatusOf(standing_).detail, HasSubstr(other_.ToString()));
  Pass(1'100);  // it is tried again
  EXPECT_EQ(Obey(), "start other");
  Pass(3'000);
  source_->Stop(other_, Source::kStopNow);
  EXPECT_EQ(Obey(), "stop other, start standing");
  Pass(600);
  ASSERT_FALSE(SuspendedFor(capture_).empty());
  ASSERT_FALSE(SuspendedFor(other_).empty());
  EXPECT_EQ(First(SuspendedFor(capture_)), from_ns);
  EXPECT_EQ(Last(SuspendedFor(capture_)), First(SuspendedFor(other_)));
  EXPECT_EQ(Last(SuspendedFor(other_)), clock_.RealtimeNs() - 600'000'000);
}

// Whatever of it the store has when the agent dies, the next one says the rest.
TEST_F(TapSourcePrecedenceTest, AnAgentThatIsRestartedKnowsTheBeginOfASuspension) {
  for (const bool stored : {false, true}) {
    SCOPED_TRACE(stored);
    sink_.entries.clear();
    FakeTap tap;
    tap.Seal(F_SEAL_SHRINK | F_SEAL_GROW);
    const auto connect = [&](const CaptureId& running) {
      UniqueFd agent_end = tap.Connect(running);
      const int fd = agent_end.get();
      source_->AddConnection(std::move(agent_end));
      runner_.FireWatch(fd);
      runner_.RunUntilIdle();
    };
    MakeSource();
    source_->ApplyOrder(SourceOrder::Start(standing_, Spec(CaptureMode::kContinuous), {}));
    connect(CaptureId());
    tap.realtime_ns = clock_.RealtimeNs();
    tap.WriteStarted(standing_);
    tap.WriteDocument(Document(0, 0, 3), standing_);
    Pass(2'000);
    sink_.StoreAll();
    Pass(300);
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
    const uint64_t from_ns = tap.realtime_ns = clock_.RealtimeNs();
    tap.WriteStopped(standing_, TapStopReason::kCommand);
    tap.WriteStarted(capture_);
    Pass(1'500);
    source_->Flush();
    if (stored) sink_.StoreAll();
    Pass(300);
    std::erase_if(sink_.entries, [](const auto& entry) { return !entry.stored; });
    MakeSource();
    Pass(7'000);
    connect(capture_);
    source_->ApplyOrder(
        SourceOrder::Start(standing_, Spec(CaptureMode::kContinuous), sink_.Cursors()));
    source_->ApplyOrder(SourceOrder::Start(capture_, {}, sink_.Cursors()));
    Pass(3'000);
    const uint64_t to_ns = tap.realtime_ns = clock_.RealtimeNs();
    source_->Stop(capture_, Source::kStopNow);
    tap.WriteStopped(capture_, TapStopReason::kCommand);
    tap.Answer(TapMessageType::kStop, TapResult::kOk, capture_);
    tap.WriteStarted(standing_);
    Pass(600);
    ASSERT_FALSE(SuspendedFor(capture_).empty());
    EXPECT_EQ(First(SuspendedFor(capture_)), from_ns);
    EXPECT_EQ(Last(SuspendedFor(capture_)), to_ns);
  }
}

}  // namespace
}  // namespace neurontrace
