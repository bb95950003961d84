// SPDX-License-Identifier: Apache-2.0
// The session between sources that are played and an aggregator that is played: what is told, in
// which order, and that all of it is told again after a lost connection.
#include "agent/control/control_session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fake_task_runner.h"
#include "trace/limits.h"
#include "trace/stream_cursor.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMs = 1'000'000;

std::string Words(const AgentReport& report) {
  struct Visitor {
    std::string operator()(const AgentInfo& info) const { return "hello " + info.agent_id; }
    std::string operator()(const WorkerInfo& worker) const {
      return fmt::format("worker {} {}", worker.identity.pid, worker.detail);
    }
    std::string operator()(const WorkerGone& gone) const {
      return fmt::format("gone {}", gone.worker.pid);
    }
    std::string operator()(const CaptureWorkerStatus& status) const {
      return fmt::format("status {} state {} read {}", status.worker.pid,
                         static_cast<int>(status.state), status.events_read);
    }
    std::string operator()(const CaptureAgentStatus& status) const {
      return fmt::format("agent {}{}", status.matched_workers, status.finished ? " finished" : "");
    }
    std::string operator()(const Heartbeat&) const { return "heartbeat"; }
  };
  return std::visit(Visitor(), report);
}

class FakeAggregator {
 public:
  ControlConnector connector() {
    return [this](ControlStream::Listener& listener) -> std::unique_ptr<ControlStream> {
      ++calls;
      ended = false;
      listener_ = &listener;
      return std::make_unique<Call>(*this);
    };
  }
  ControlStream::Listener& listener() { return *listener_; }
  // What was sent and not heard yet, with every write done.
  std::vector<std::string> Hear() {
    std::vector<std::string> heard;
    while (!ended && !sent_.empty()) {
      heard.push_back(sent_);
      sent_.clear();
      listener_->OnWritten();
    }
    return heard;
  }

  int calls = 0;
  bool ended = false;  // the agent ended the call

 private:
  class Call final : public ControlStream {
   public:
    explicit Call(FakeAggregator& aggregator) : aggregator_(aggregator) {}
    ~Call() override {
      aggregator_.ended = true;
      aggregator_.sent_.clear();
    }
    void Send(const AgentReport& report) override {
      ASSERT_THAT(aggregator_.sent_, IsEmpty()) << "one at a time";
      aggregator_.sent_ = Words(report);
    }

   private:
    FakeAggregator& aggregator_;
  };

  ControlStream::Listener* listener_ = nullptr;
  std::string sent_;
};

// Keeps captures as a source does.
class FakeSource final : public Source {
 public:
  void StartCapture(const CaptureId& id, const CaptureSpec& spec,
                    std::span<const StreamCursor> cursors) override {
    calls.push_back(fmt::format("start {} {}", spec.name, cursors.size()));
    running[id] = true;
  }
  void GoOn(const CaptureId& id, const CaptureSpec& spec,
            std::span<const StreamCursor> cursors) override {
    calls.push_back(fmt::format("go on {} {}", spec.name, cursors.size()));
    running[id] = true;
  }
  void ResumeStopping(const CaptureId& id, const CaptureSpec& spec,
                      std::span<const StreamCursor> cursors) override {
    calls.push_back(fmt::format("resume {} {}", spec.name, cursors.size()));
    running[id] = true;
  }
  void OnAllTold() override { running_when_all_told = running; }
  void StopCapture(const CaptureId& id) override {
    calls.emplace_back("stop");
    running[id] = false;
  }
  bool CaptureFinished(const CaptureId& id) const override {
    const auto it = running.find(id);
    return drained && it != running.end() && !it->second;
  }
  void Flush() override {}
  void ForgetCapture(const CaptureId& id) override {
    calls.emplace_back("forget");
    running.erase(id);
  }

  bool drained = true;
  std::map<CaptureId, bool> running;
  std::optional<std::map<CaptureId, bool>> running_when_all_told;
  std::vector<std::string> calls;
};

class ControlSessionTest : public ::testing::Test {
 protected:
  ControlSessionTest() {
    session_.AddSource(source_);
    spec_.name = "demo";
  }
  static AgentInfo Info() {
    AgentInfo info;
    info.agent_id = "agent-1";
    return info;
  }
  ControlSession::Hooks Hooks() {
    return {.on_welcome = [this](const std::set<CaptureId>&) { hooks_.emplace_back("welcome"); },
            .on_lost = [this] { hooks_.emplace_back("lost"); },
            .check_aggregator =
                [this](const std::string&) {
                  return right_aggregator_ ? absl::OkStatus()
                                           : absl::FailedPreconditionError("another one");
                },
            .was_wrong = [this](const CaptureResume&) { return was_wrong_; },
            .on_running = [this](const CaptureId&,
                                 const CaptureSpec& spec) { running_.push_back(spec.name); },
            .on_capture_stopping = [this] { ++stopping_; },
            .on_capture_over = [this](const CaptureId&) { hooks_.emplace_back("over"); }};
  }
  // Connects and is welcomed with `captures`; returns what is said after the hello.
  std::vector<std::string> Begin(std::vector<CaptureResume> captures = {}) {
    session_.Start();
    return WelcomeNow(std::move(captures));
  }
  std::vector<std::string> WelcomeNow(std::vector<CaptureResume> captures = {}) {
    EXPECT_THAT(aggregator_.Hear(), ElementsAre("hello agent-1"));
    Welcome welcome;
    welcome.captures = std::move(captures);
    aggregator_.listener().OnWelcome(welcome);
    return aggregator_.Hear();
  }
  void TellWorker(uint32_t pid, std::string detail = "") {
    WorkerInfo info;
    info.identity.pid = pid;
    info.detail = std::move(detail);
    session_.OnWorker(info);
  }
  void TellStatus(uint32_t pid, CaptureWorkerState state, uint64_t read) {
    CaptureWorkerStatus status;
    status.capture_id = capture_;
    status.worker.pid = pid;
    status.state = state;
    status.events_read = read;
    session_.OnCaptureWorker(status);
  }
  CaptureResume Resume(bool stopping) {
    return {capture_, spec_, stopping, std::vector<StreamCursor>(2)};
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  SeededRandom random_{1};
  CaptureId capture_ = CaptureId::Make(clock_, random_);
  CaptureSpec spec_;
  FakeAggregator aggregator_;
  FakeSource source_;
  std::vector<std::string> hooks_;
  int stopping_ = 0;
  std::vector<std::string> running_;
  bool was_wrong_ = false;
  bool right_aggregator_ = true;
  ControlSession session_{Info(), aggregator_.connector(), clock_, runner_, random_, Hooks()};
};

TEST_F(ControlSessionTest, SaysNothingButHelloBeforeItIsWelcome) {
  TellWorker(1);
  session_.Start();
  runner_.AdvanceNs(3'000 * kMs);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("hello agent-1"));
  EXPECT_THAT(aggregator_.Hear(), IsEmpty());
  EXPECT_THAT(hooks_, IsEmpty());
}

TEST_F(ControlSessionTest, TellsItsWorkersAndTheirChanges) {
  TellWorker(1, "old");
  TellWorker(2);
  EXPECT_THAT(Begin(), ElementsAre("worker 1 old", "worker 2 "));
  EXPECT_THAT(hooks_, ElementsAre("welcome"));
  TellWorker(1, "new");
  WorkerIdentity gone;
  gone.pid = 2;
  session_.OnWorkerGone(gone);
  session_.OnWorkerGone(gone);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("worker 1 new", "gone 2"));
}

TEST_F(ControlSessionTest, SlowConnectionsGetTheLatestNewsOnly) {
  Begin();
  for (int i = 0; i < 100; ++i) TellWorker(1, std::to_string(i));
  // The first was under way at once.
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("worker 1 0", "worker 1 99"));
}

TEST_F(ControlSessionTest, CarriesOutOrdersAndReportsTheEndLast) {
  Begin();
  source_.drained = false;
  aggregator_.listener().OnStartCapture(capture_, spec_);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("agent 0"));
  TellStatus(7, CaptureWorkerState::kRecording, 0);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("status 7 state 2 read 0"));
  // Counts wait for the next progress report, and are told once.
  for (uint64_t i = 1; i <= 50; ++i) TellStatus(7, CaptureWorkerState::kRecording, i);
  EXPECT_THAT(aggregator_.Hear(), IsEmpty());
  runner_.AdvanceNs(600 * kMs);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("status 7 state 2 read 50", "agent 1"));

  EXPECT_EQ(stopping_, 0);
  aggregator_.listener().OnStopCapture(capture_);
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "stop"));
  EXPECT_EQ(stopping_, 1);
  runner_.AdvanceNs(200 * kMs);
  EXPECT_THAT(aggregator_.Hear(), Not(Contains(HasSubstr("finished"))));
  TellStatus(7, CaptureWorkerState::kComplete, 60);
  source_.drained = true;
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.Hear(), ElementsAre("status 7 state 4 read 60", "agent 1 finished"));
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "stop", "forget"));
}

TEST_F(ControlSessionTest, EndIsReportedAfterWhatWaitsOnASlowConnection) {
  Begin();
  aggregator_.listener().OnStartCapture(capture_, spec_);  // "agent 0" is under way from here
  runner_.AdvanceNs(600 * kMs);                            // a second one waits
  aggregator_.listener().OnStopCapture(capture_);
  TellStatus(7, CaptureWorkerState::kComplete, 5);
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.Hear(),
              ElementsAre("agent 0", "status 7 state 4 read 5", "agent 1 finished"));
}

TEST_F(ControlSessionTest, WaitsForTheLastWordsOfWorkersButNotForEver) {
  Begin();
  aggregator_.listener().OnStartCapture(capture_, spec_);
  TellStatus(7, CaptureWorkerState::kRecording, 5);
  aggregator_.listener().OnStopCapture(capture_);
  runner_.AdvanceNs(1'000 * kMs);
  EXPECT_THAT(aggregator_.Hear(), Not(Contains(HasSubstr("finished"))));
  runner_.AdvanceNs(1'100 * kMs);
  EXPECT_THAT(aggregator_.Hear(), Contains("agent 1 finished"));
}

TEST_F(ControlSessionTest, RepeatedOrdersChangeNothing) {
  Begin();
  aggregator_.listener().OnStartCapture(capture_, spec_);
  aggregator_.listener().OnStartCapture(capture_, spec_);
  aggregator_.listener().OnStopCapture(capture_);
  runner_.AdvanceNs(100 * kMs);
  const auto calls = source_.calls;
  aggregator_.listener().OnStartCapture(capture_, spec_);
  EXPECT_EQ(source_.calls, calls) << "a finished capture does not begin again";
  aggregator_.Hear();
  runner_.AdvanceNs(1'000 * kMs);
  EXPECT_THAT(aggregator_.Hear(), Not(Contains(HasSubstr("agent 0"))));
}

TEST_F(ControlSessionTest, StopOfACaptureNeverStartedIsFinishedAtOnce) {
  Begin();
  aggregator_.listener().OnStopCapture(capture_);
  runner_.AdvanceNs(100 * kMs);
  EXPECT_THAT(aggregator_.Hear(), Contains("agent 0 finished"));
}

TEST_F(ControlSessionTest, ReconnectsLaterAndLaterAndTellsAllAgain) {
  TellWorker(1);
  Begin();
  source_.drained = false;
  aggregator_.listener().OnStartCapture(capture_, spec_);
  TellStatus(1, CaptureWorkerState::kRecording, 3);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  EXPECT_THAT(hooks_, ElementsAre("welcome", "lost"));
  TellWorker(2);
  runner_.AdvanceNs(70 * kMs);
  EXPECT_EQ(aggregator_.calls, 1);
  runner_.AdvanceNs(40 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
  EXPECT_THAT(WelcomeNow({Resume(false)}),
              ElementsAre("worker 1 ", "worker 2 ", "status 1 state 2 read 3", "agent 1"));
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "start demo 2"));
}

TEST_F(ControlSessionTest, FinishedCaptureSaysSoAgainAfterAReconnect) {
  Begin();
  aggregator_.listener().OnStartCapture(capture_, spec_);
  aggregator_.listener().OnStopCapture(capture_);
  runner_.AdvanceNs(100 * kMs);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  EXPECT_THAT(WelcomeNow({Resume(true)}), Contains("agent 0 finished"));
  EXPECT_THAT(source_.calls, Not(Contains("start demo 2")));
}

TEST_F(ControlSessionTest, CapturesThatAWelcomeDoesNotListAreOver) {
  Begin();
  aggregator_.listener().OnStartCapture(capture_, spec_);
  aggregator_.listener().OnClosed(absl::UnavailableError("gone"));
  runner_.AdvanceNs(200 * kMs);
  WelcomeNow();
  EXPECT_THAT(source_.calls, ElementsAre("start demo 0", "forget"));
  EXPECT_THAT(hooks_, ElementsAre("welcome", "lost", "over", "welcome"));
  EXPECT_EQ(session_.captures(), 0u);
}

TEST_F(ControlSessionTest, AgentThatComesBackGoesOnWithWhatIsRunning) {
  EXPECT_THAT(Begin({Resume(true)}), Contains("agent 0"));
  EXPECT_THAT(source_.calls, ElementsAre("resume demo 2", "stop"));
}

TEST_F(ControlSessionTest, SourcesHearWhenAWelcomeHasToldThemAll) {
  source_.drained = false;
  EXPECT_FALSE(source_.running_when_all_told);
  Begin({Resume(false)});
  ASSERT_TRUE(source_.running_when_all_told);
  EXPECT_THAT(*source_.running_when_all_told, ElementsAre(std::pair(capture_, true)));
}

TEST_F(ControlSessionTest, WhatGoesOnByItselfIsConfirmedStoppedOrForgottenByTheWelcome) {
  source_.drained = false;
  session_.GoOn(Resume(false));
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2"));
  TellStatus(7, CaptureWorkerState::kRecording, 5);
  EXPECT_THAT(Begin({Resume(false)}), Contains("status 7 state 2 read 5"));
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2", "start demo 2"));
  EXPECT_THAT(running_, ElementsAre("demo"));
}

TEST_F(ControlSessionTest, WhatGoesOnByItselfIsNotBegunAnewToBeStopped) {
  source_.drained = false;
  session_.GoOn(Resume(false));
  Begin({Resume(true)});
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2", "resume demo 2", "stop"));
}

TEST_F(ControlSessionTest, WhatGoesOnByItselfAndIsOverIsForgotten) {
  session_.GoOn(Resume(false));
  Begin();
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2", "forget"));
  EXPECT_THAT(hooks_, ElementsAre("over", "welcome"));
}

TEST_F(ControlSessionTest, WhatWasResumedWronglyIsBegunAgain) {
  was_wrong_ = true;
  session_.GoOn(Resume(false));
  Begin({Resume(false)});
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2", "forget", "start demo 2"));
}

TEST_F(ControlSessionTest, AggregatorThatIsAnotherIsLeftAndTriedAgain) {
  right_aggregator_ = false;
  source_.drained = false;
  session_.GoOn(Resume(false));
  EXPECT_THAT(Begin(), IsEmpty());
  runner_.AdvanceNs(10 * kMs);
  EXPECT_TRUE(aggregator_.ended);
  EXPECT_FALSE(session_.welcomed());
  EXPECT_THAT(hooks_, IsEmpty());
  EXPECT_THAT(source_.calls, ElementsAre("go on demo 2")) << "it is not over because of that";
  right_aggregator_ = true;
  runner_.AdvanceNs(200 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
  WelcomeNow({Resume(false)});
  EXPECT_TRUE(session_.welcomed());
}

TEST_F(ControlSessionTest, GivesUpACallThatIsNeverWelcomed) {
  session_.Start();
  aggregator_.Hear();
  runner_.AdvanceNs(9'900 * kMs);
  EXPECT_FALSE(aggregator_.ended);
  runner_.AdvanceNs(300 * kMs);
  EXPECT_EQ(aggregator_.calls, 2);
}

TEST_F(ControlSessionTest, HeartbeatsWhileThereIsNothingElse) {
  Begin();
  aggregator_.Hear();
  int heartbeats = 0;
  for (int i = 0; i < 100; ++i) {
    runner_.AdvanceNs(100 * kMs);
    for (const auto& words : aggregator_.Hear()) heartbeats += words == "heartbeat";
  }
  EXPECT_EQ(heartbeats, 5);
}

TEST_F(ControlSessionTest, RunningCapturesAreBounded) {
  Begin();
  source_.drained = false;
  for (uint32_t i = 0; i < limits::kCapturesRunningMax + 5; ++i) {
    aggregator_.listener().OnStartCapture(CaptureId::Make(clock_, random_), spec_);
  }
  EXPECT_EQ(session_.captures(), limits::kCapturesRunningMax);
}

TEST_F(ControlSessionTest, FinishedCapturesAreForgottenInTime) {
  Begin();
  for (int i = 0; i < 200; ++i) {
    const CaptureId id = CaptureId::Make(clock_, random_);
    aggregator_.listener().OnStartCapture(id, spec_);
    aggregator_.listener().OnStopCapture(id);
    runner_.AdvanceNs(100 * kMs);
    aggregator_.Hear();
  }
  EXPECT_LE(session_.captures(), 65u);
  EXPECT_THAT(source_.running, IsEmpty());
}

TEST_F(ControlSessionTest, StoppedSessionSaysNothingMore) {
  Begin();
  session_.Stop();
  TellWorker(1);
  runner_.AdvanceNs(60'000 * kMs);
  EXPECT_EQ(aggregator_.calls, 1);
  EXPECT_TRUE(aggregator_.ended);
}

}  // namespace
}  // namespace neurontrace
