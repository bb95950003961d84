// SPDX-License-Identifier: Apache-2.0
// What the session does about captures that are armed before they begin, snapshots and triggers.
#include "agent/control/control_session.h"

#include "agent/control/control_session_fixture.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST_F(ControlSessionTest, ArmsStartsAndStopsAtGivenTimes) {
  Begin();
  source_.drained = false;
  aggregator_.listener().OnStartCapture({.capture_id = capture_, .spec = spec_, .arm = true});
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("agent 0")) << "at once: it is waited for";
  ReportStatus(7, CaptureWorkerState::kArmed, 0);
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("status 7 state 7 read 0"));
  aggregator_.listener().OnBeginCapture(capture_, {.host_raw_ns = 99});
  aggregator_.listener().OnBeginCapture(capture_, {.host_raw_ns = 99, .first_execution = 5});
  aggregator_.listener().OnStopCapture(capture_, 123);
  EXPECT_THAT(source_.calls, ElementsAre("arm demo 0", "begin 99 0", "begin 99 5", "stop at 123"));
}

TEST_F(ControlSessionTest, IgnoresBeginOfUnarmedCapture) {
  Begin();
  aggregator_.listener().OnBeginCapture(capture_, {.host_raw_ns = 99});
  EXPECT_THAT(source_.calls, IsEmpty());
  EXPECT_EQ(session_.captures(), 0u);
}

TEST_F(ControlSessionTest, AConnectionLostBetweenArmingAndBeginningArmsOrJoins) {
  Begin();
  source_.drained = false;
  CaptureResume armed{.capture_id = capture_, .spec = spec_, .arm = true};
  aggregator_.listener().OnStartCapture(armed);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  WelcomeNow({armed});
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(400 * kMs);
  CaptureResume begun{.capture_id = capture_, .spec = spec_, .begin = CaptureBegin{}};
  begun.begin->host_raw_ns = 7;
  WelcomeNow({begun});
  EXPECT_THAT(source_.calls, ElementsAre("arm demo 0", "arm demo 0", "join demo 0 7"));
}

TEST_F(ControlSessionTest, SnapshotEndsByItselfDespiteStop) {
  Begin();
  spec_.mode = CaptureMode::kSnapshot;
  source_.ends_itself = true;
  source_.drained = false;
  CaptureResume cut{.capture_id = capture_, .spec = spec_, .stopping = true};
  cut.begin.emplace().host_raw_ns = 7;
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  WelcomeNow({cut});
  EXPECT_THAT(source_.calls, ElementsAre("join demo 0 7"));
  source_.drained = true;
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.TakeSent(), Contains("agent 0 finished"));
}

TEST_F(ControlSessionTest, DoesNotResumeOfflineWhatNeedsAggregator) {
  CaptureResume resume = Resume(false);
  for (const CaptureMode mode : {CaptureMode::kSnapshot, CaptureMode::kPreview}) {
    resume.spec.mode = mode;
    session_.Resume(resume);
  }
  resume.spec = spec_;
  resume.spec.conditions.at_next_execution = true;
  session_.Resume(resume);
  EXPECT_THAT(source_.calls, IsEmpty());
  for (const CaptureMode mode : {CaptureMode::kFlightRecorder, CaptureMode::kContinuous}) {
    resume.spec = spec_;
    resume.spec.mode = mode;
    session_.Resume(resume);
  }
  EXPECT_THAT(source_.calls, ElementsAre("continue demo 2", "continue demo 2"));
  EXPECT_THAT(observer_.running, IsEmpty());
  spec_.mode = CaptureMode::kPreview;
  Begin({Resume(false)});
  EXPECT_THAT(observer_.running, IsEmpty()) << "the next agent is not to go on with it";
}

TEST_F(ControlSessionTest, ReportsExecutionProgressImmediatelyWhenAwaited) {
  Begin();
  source_.drained = false;
  spec_.conditions.at_next_execution = true;
  aggregator_.listener().OnStartCapture({capture_, spec_});
  aggregator_.TakeSent();
  CaptureWorkerStatus status{.capture_id = capture_, .state = CaptureWorkerState::kRecording};
  session_.OnCaptureWorker(status);
  EXPECT_THAT(aggregator_.TakeSent(), SizeIs(1));
  status.newest_execution = 17;
  session_.OnCaptureWorker(status);
  EXPECT_THAT(aggregator_.TakeSent(), SizeIs(1));
  // A core that follows the others changes none of the worker's extremes above.
  status.lowest_newest_execution = 16;
  session_.OnCaptureWorker(status);
  EXPECT_THAT(aggregator_.TakeSent(), SizeIs(1));
  status.highest_first_execution = 16;
  session_.OnCaptureWorker(status);
  EXPECT_THAT(aggregator_.TakeSent(), SizeIs(1));
}

TEST_F(ControlSessionTest, DeliversTriggersAndReportsFirings) {
  EXPECT_FALSE(session_.ReportTrigger({.rule = "too early"}));
  Begin();
  aggregator_.listener().OnSetTriggers({TriggerRule{.name = "slow"}}, 4);
  EXPECT_THAT(observer_.triggers, ElementsAre("slow 4"));
  EXPECT_TRUE(session_.ReportTrigger({.rule = "slow"}));
  EXPECT_TRUE(session_.ReportTrigger({.rule = "silent"}));
  EXPECT_THAT(aggregator_.TakeSent(), ElementsAre("fired slow", "fired silent"));
}

TEST_F(ControlSessionTest, StoppedSessionSendsNothing) {
  Begin();
  session_.Stop();
  ReportWorker(1);
  runner_.AdvanceNs(60'000 * kMs);
  EXPECT_EQ(aggregator_.calls, 1);
  EXPECT_TRUE(aggregator_.ended);
}

TEST_F(ControlSessionTest, ReportsFiringAfterConnectionLoss) {
  Begin();
  const auto fire = [this](const char* rule, uint64_t ago_ns) {
    EXPECT_TRUE(
        session_.ReportTrigger({.rule = rule, .host_realtime_ns = clock_.RealtimeNs() - ago_ns}));
  };
  const auto lose = [this] {
    aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
    runner_.AdvanceNs(200 * kMs);
  };
  fire("being written", 0);
  fire("waiting", 0);
  lose();
  EXPECT_THAT(WelcomeNow(), IsSupersetOf({"fired being written", "fired waiting"}));
  fire("stale", 31'000 * kMs);
  lose();
  EXPECT_THAT(WelcomeNow(), Each(Not(StartsWith("fired"))));
}

}  // namespace
}  // namespace neurontrace
