// SPDX-License-Identifier: Apache-2.0
// The session between fake sources and a fake aggregator: what is reported, in which order, and
// that all of it is reported again after a lost connection.
#include "agent/control/control_session.h"

#include "agent/control/control_session_fixture.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
TEST_F(ControlSessionTest, SendsOnlyHelloBeforeWelcome) {
  ReportWorker(1);
  session_.Start();
  runner_.AdvanceNs(3'000 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("hello agent-1"));
  EXPECT_THAT(aggregator_.TakeSent(), IsEmpty());
  EXPECT_THAT(observer_.events, IsEmpty());
}

TEST_F(ControlSessionTest, ReportsWorkersAndChanges) {
  ReportWorker(1, "old");
  ReportWorker(2);
  EXPECT_THAT(Begin(), ElementsAre("worker 1 old", "worker 2 "));
  EXPECT_THAT(observer_.events, ElementsAre("welcome"));
  ReportWorker(1, "new");
  WorkerIdentity gone;
  gone.pid = 2;
  session_.OnWorkerGone(gone);
  session_.OnWorkerGone(gone);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("worker 1 new", "gone 2"));
}

TEST_F(ControlSessionTest, SendsOnlyLatestStateToSlowConnections) {
  Begin();
  for (int i = 0; i < 100; ++i) ReportWorker(1, std::to_string(i));
  // The first was under way at once.
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("worker 1 0", "worker 1 99"));
}

TEST_F(ControlSessionTest, CarriesOutOrdersAndReportsTheEndLast) {
  Begin();
  source_.drained = false;
  aggregator_.listener().OnStartCapture({capture_, spec_});
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("agent 0"));
  ReportStatus(7, CaptureWorkerState::kRecording, 0);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("status 7 state 2 read 0"));
  // Counts wait for the next progress report, and are reported once.
  for (uint64_t i = 1; i <= 50; ++i) ReportStatus(7, CaptureWorkerState::kRecording, i);
  EXPECT_THAT(aggregator_.TakeSent(), IsEmpty());
  runner_.AdvanceNs(600 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("status 7 state 2 read 50", "agent 1"));

  EXPECT_EQ(observer_.stopping, 0);
  aggregator_.listener().OnStopCapture(capture_, 0);
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "stop"));
  EXPECT_EQ(observer_.stopping, 1);
  runner_.AdvanceNs(200 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Not(Contains(HasSubstr("finished"))));
  ReportStatus(7, CaptureWorkerState::kComplete, 60);
  source_.drained = true;
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("status 7 state 4 read 60", "agent 1 finished"));
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "stop", "forget"));
}

TEST_F(ControlSessionTest, ReportsEndAfterQueuedReportsOnSlowConnection) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});  // "agent 0" is under way from here
  runner_.AdvanceNs(600 * kMs);                              // a second one waits
  aggregator_.listener().OnStopCapture(capture_, 0);
  ReportStatus(7, CaptureWorkerState::kComplete, 5);
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(),
              ElementsAre("agent 0", "status 7 state 4 read 5", "agent 1 finished"));
}

TEST_F(ControlSessionTest, WaitsBoundedTimeForFinalWorkerReports) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});
  ReportStatus(7, CaptureWorkerState::kRecording, 5);
  aggregator_.listener().OnStopCapture(capture_, 0);
  runner_.AdvanceNs(1'000 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Not(Contains(HasSubstr("finished"))));
  runner_.AdvanceNs(1'100 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Contains("agent 1 finished"));
}

TEST_F(ControlSessionTest, RepeatedOrdersChangeNothing) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});
  aggregator_.listener().OnStartCapture({capture_, spec_});
  aggregator_.listener().OnStopCapture(capture_, 0);
  runner_.AdvanceNs(100 * kMs);
  const auto calls = source_.calls;
  aggregator_.listener().OnStartCapture({capture_, spec_});
  EXPECT_EQ(source_.calls, calls) << "a finished capture does not begin again";
  aggregator_.TakeSent();
  runner_.AdvanceNs(1'000 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Not(Contains(HasSubstr("agent 0"))));
}

TEST_F(ControlSessionTest, StopOfACaptureNeverStartedIsFinishedAtOnce) {
  Begin();
  aggregator_.listener().OnStopCapture(capture_, 0);
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Contains("agent 0 finished"));
}

TEST_F(ControlSessionTest, BacksOffReconnectsAndReportsEverythingAgain) {
  ReportWorker(1);
  Begin();
  source_.drained = false;
  aggregator_.listener().OnStartCapture({capture_, spec_});
  ReportStatus(1, CaptureWorkerState::kRecording, 3);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  EXPECT_THAT(observer_.events, ElementsAre("welcome", "lost"));
  ReportWorker(2);
  runner_.AdvanceNs(70 * kMs);
  EXPECT_EQ(aggregator_.calls, 1);
  runner_.AdvanceNs(40 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
  EXPECT_THAT(WelcomeNow({Resume(false)}),
              ElementsAre("worker 1 ", "worker 2 ", "status 1 state 2 read 3", "agent 1"));
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "start demo 2"));
}

TEST_F(ControlSessionTest, RepeatsFinishedReportAfterReconnect) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});
  aggregator_.listener().OnStopCapture(capture_, 0);
  runner_.AdvanceNs(100 * kMs);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  EXPECT_THAT(WelcomeNow({Resume(true)}), Contains("agent 0 finished"));
  EXPECT_THAT(source_.calls, Not(Contains("start demo 2")));
}

TEST_F(ControlSessionTest, CapturesThatAWelcomeDoesNotListAreOver) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  WelcomeNow();
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "forget"));
  EXPECT_THAT(observer_.events, ElementsAre("welcome", "lost", "over", "welcome"));
  EXPECT_EQ(session_.captures(), 0u);
}

TEST_F(ControlSessionTest, ReturningAgentResumesRunningCaptures) {
  EXPECT_THAT(Begin({Resume(true)}), Contains("agent 0"));
  EXPECT_THAT(source_.calls, ElementsAre("finish demo 2", "stop"));
}

TEST_F(ControlSessionTest, OneThatIsStoppingKeepsItsExecutions) {
  CaptureResume resume = Resume(true);
  resume.begin = CaptureBegin{.host_raw_ns = 7, .first_execution = 40, .last_execution = 49};
  Begin({resume});
  EXPECT_THAT(source_.calls, ElementsAre("finish demo 2 from 40", "stop"));
}

TEST_F(ControlSessionTest, NotifiesSourcesWhenCaptureListIsComplete) {
  source_.drained = false;
  EXPECT_FALSE(source_.running_when_list_complete);
  Begin({Resume(false)});
  ASSERT_TRUE(source_.running_when_list_complete);
  EXPECT_THAT(*source_.running_when_list_complete, ElementsAre(std::pair(capture_, true)));
}

TEST_F(ControlSessionTest, WelcomeConfirmsStopsOrForgetsResumedCaptures) {
  source_.drained = false;
  session_.Resume(Resume(false));
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2"));
  ReportStatus(7, CaptureWorkerState::kRecording, 5);
  EXPECT_THAT(Begin({Resume(false)}), Contains("status 7 state 2 read 5"));
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2", "start demo 2"));
  EXPECT_THAT(observer_.running, ElementsAre("demo"));
}

TEST_F(ControlSessionTest, ResumedAndStoppingCapturesHaveTheirModeOnTheStatusPage) {
  source_.drained = false;
  spec_.mode = CaptureMode::kContinuous;
  session_.Resume(Resume(false));
  ASSERT_EQ(session_.CaptureStates().size(), 1u);
  EXPECT_EQ(session_.CaptureStates()[0].mode, CaptureMode::kContinuous);
  Begin();  // over
  ASSERT_EQ(session_.captures(), 0u);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  WelcomeNow({Resume(true)});
  ASSERT_EQ(session_.CaptureStates().size(), 1u);
  EXPECT_EQ(session_.CaptureStates()[0].mode, CaptureMode::kContinuous);
}

TEST_F(ControlSessionTest, StopsResumedCaptureWithoutRestartingIt) {
  source_.drained = false;
  session_.Resume(Resume(false));
  Begin({Resume(true)});
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2", "finish demo 2", "stop"));
}

TEST_F(ControlSessionTest, ForgetsResumedCaptureThatIsOver) {
  session_.Resume(Resume(false));
  Begin();
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2", "forget"));
  EXPECT_THAT(observer_.events, ElementsAre("over", "welcome"));
}

TEST_F(ControlSessionTest, RestartsWronglyResumedCapture) {
  observer_.was_resumed_wrongly = true;
  session_.Resume(Resume(false));
  Begin({Resume(false)});
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2", "forget", "start demo 2"));
}

TEST_F(ControlSessionTest, DisconnectsFromForeignAggregatorAndRetries) {
  observer_.is_right_aggregator = false;
  source_.drained = false;
  session_.Resume(Resume(false));
  EXPECT_THAT(Begin(), IsEmpty());
  runner_.AdvanceNs(10 * kMs);
  EXPECT_TRUE(aggregator_.ended);
  EXPECT_FALSE(session_.welcomed());
  EXPECT_THAT(observer_.events, IsEmpty());
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2")) << "it is not over because of that";
  observer_.is_right_aggregator = true;
  runner_.AdvanceNs(200 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
  WelcomeNow({Resume(false)});
  EXPECT_TRUE(session_.welcomed());
}

TEST_F(ControlSessionTest, GivesUpACallThatIsNeverWelcomed) {
  session_.Start();
  aggregator_.TakeSent();
  runner_.AdvanceNs(9'900 * kMs);
  EXPECT_FALSE(aggregator_.ended);
  runner_.AdvanceNs(300 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
}

TEST_F(ControlSessionTest, ReportsWhetherAnyWorkerRecords) {
  Begin();
  EXPECT_FALSE(session_.Records(capture_)) << "no such capture";
  aggregator_.listener().OnStartCapture({capture_, spec_});
  ReportStatus(7, CaptureWorkerState::kStarting, 0);
  EXPECT_FALSE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 0);
  ReportStatus(7, CaptureWorkerState::kRecording, 0);
  ReportStatus(8, CaptureWorkerState::kRecording, 0);
  ReportStatus(7, CaptureWorkerState::kRecording, 5);
  EXPECT_TRUE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 1);
  ReportStatus(7, CaptureWorkerState::kComplete, 5);
  EXPECT_TRUE(session_.Records(capture_)) << "the other one does";
  ReportStatus(8, CaptureWorkerState::kSuspended, 5);
  EXPECT_FALSE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 2);
  ReportStatus(8, CaptureWorkerState::kRecording, 5);
  EXPECT_TRUE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 3);
}

TEST_F(ControlSessionTest, ReaderOfTraceFilesRecordsOnceItHasOne) {
  Begin();
  aggregator_.listener().OnStartCapture({capture_, spec_});
  CaptureWorkerStatus status{.capture_id = capture_,
                             .state = CaptureWorkerState::kRecording,
                             .detail = "no trace file yet",
                             .framework = true};
  session_.OnCaptureWorker(status);
  EXPECT_FALSE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 0);
  status.streams = 1;
  session_.OnCaptureWorker(status);
  EXPECT_TRUE(session_.Records(capture_));
  EXPECT_EQ(observer_.recording_changes, 1);
}

TEST_F(ControlSessionTest, SendsHeartbeatsWhenIdle) {
  Begin();
  aggregator_.TakeSent();
  int heartbeats = 0;
  for (int i = 0; i < 100; ++i) {
    runner_.AdvanceNs(100 * kMs);
    for (const auto& words : aggregator_.TakeSent()) heartbeats += words == "heartbeat";
  }
  EXPECT_EQ(heartbeats, 5);
}

TEST_F(ControlSessionTest, RunningCapturesAreBounded) {
  Begin();
  source_.drained = false;
  for (uint32_t i = 0; i < limits::kCapturesRunningMax + 5; ++i) {
    aggregator_.listener().OnStartCapture({CaptureId::Make(clock_, random_), spec_});
  }
  EXPECT_EQ(session_.captures(), limits::kCapturesRunningMax);
}

TEST_F(ControlSessionTest, FinishedCapturesAreForgottenInTime) {
  Begin();
  for (int i = 0; i < 200; ++i) {
    const CaptureId id = CaptureId::Make(clock_, random_);
    aggregator_.listener().OnStartCapture({id, spec_});
    aggregator_.listener().OnStopCapture(id, 0);
    runner_.AdvanceNs(100 * kMs);
    aggregator_.TakeSent();
  }
  EXPECT_LE(session_.captures(), 65u);
  EXPECT_THAT(source_.running, IsEmpty());
}

TEST_F(ControlSessionTest, KeepsFewFinishedCapturesHoweverManyAreStoppedAtOnce) {
  Begin();
  for (int i = 0; i < 1'000; ++i) {
    aggregator_.listener().OnStopCapture(CaptureId::Make(clock_, random_), 0);
  }
  runner_.AdvanceNs(100 * kMs);
  EXPECT_LE(session_.captures(), 64u);
}

}  // namespace
}  // namespace neurontrace
