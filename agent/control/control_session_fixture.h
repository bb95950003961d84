// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/control/control_observer.h"
#include "agent/control/control_session.h"
#include "lib/base/fake_task_runner.h"
#include "lib/trace/limits.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

inline constexpr uint64_t kMs = 1'000'000;

// For tests: the content of a report.
inline std::string Words(const AgentReport& report) {
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
    std::string operator()(const TriggerFired& fired) const { return "fired " + fired.rule; }
    std::string operator()(const WorkerStacks& stacks) const {
      return fmt::format("stacks {} of {}", stacks.collection, stacks.worker.pid);
    }
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
  // Returns what was sent since the last call, with every write done.
  std::vector<std::string> TakeSent() {
    std::vector<std::string> taken;
    while (!ended && !sent_.empty()) {
      taken.push_back(sent_);
      sent_.clear();
      listener_->OnWritten();
    }
    return taken;
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
      ASSERT_THAT(aggregator_.sent_, ::testing::IsEmpty()) << "one at a time";
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
  void ApplyOrder(const SourceOrder& order) override {
    using Kind = SourceOrder::Kind;
    const std::string of = fmt::format("{} {}", order.spec.name, order.cursors.size());
    switch (order.kind) {
      case Kind::kStart:
        calls.push_back("start " + of);
        break;
      case Kind::kArm:
        calls.push_back("arm " + of);
        break;
      case Kind::kBegin:
        calls.push_back(
            fmt::format("begin {} {}", order.begin->host_raw_ns, order.begin->first_execution));
        return;
      case Kind::kJoin:
        calls.push_back(fmt::format("join {} {}", of, order.begin->host_raw_ns));
        running[order.capture_id] = !ends_itself;
        return;
      case Kind::kContinue:
        calls.push_back("continue " + of);
        break;
      case Kind::kFinish:
        calls.push_back("finish " + of);
        if (order.begin) calls.back() += fmt::format(" from {}", order.begin->first_execution);
        break;
    }
    running[order.capture_id] = true;
  }
  void Stop(const CaptureId& id, uint64_t host_raw_ns) override {
    calls.push_back(host_raw_ns == kStopNow ? "stop" : fmt::format("stop at {}", host_raw_ns));
    running[id] = false;
  }
  void OnCaptureListComplete() override { running_when_list_complete = running; }
  bool IsFinished(const CaptureId& id) const override {
    const auto it = running.find(id);
    return drained && it != running.end() && !it->second;
  }
  void Flush() override {}
  void Forget(const CaptureId& id) override {
    calls.emplace_back("forget");
    running.erase(id);
  }

  bool drained = true;
  bool ends_itself = false;  // what is joined is a snapshot, and cut
  std::map<CaptureId, bool> running;
  std::optional<std::map<CaptureId, bool>> running_when_list_complete;
  std::vector<std::string> calls;
};

// Records what the session tells it, and answers as the test wants.
class RecordingObserver final : public ControlObserver {
 public:
  void OnWelcome(const std::set<CaptureId>&) override { events.emplace_back("welcome"); }
  void OnConnectionLost() override { events.emplace_back("lost"); }
  absl::Status CheckAggregator(const std::string&) override {
    return is_right_aggregator ? absl::OkStatus() : absl::FailedPreconditionError("another one");
  }
  bool WasWronglyResumed(const CaptureResume&) override { return was_resumed_wrongly; }
  void OnCaptureRunning(const CaptureId&, const CaptureSpec& spec) override {
    running.push_back(spec.name);
  }
  void OnRecordingChanged() override { ++recording_changes; }
  void OnCaptureStopping() override { ++stopping; }
  void OnCaptureOver(const CaptureId&) override { events.emplace_back("over"); }
  void OnTriggers(const std::vector<TriggerRule>& rules, uint64_t version) override {
    triggers.push_back(fmt::format("{} {}", rules.at(0).name, version));
  }

  bool is_right_aggregator = true;
  bool was_resumed_wrongly = false;
  std::vector<std::string> events;    // of calls and captures
  std::vector<std::string> running;   // names of captures
  std::vector<std::string> triggers;  // first rule and version of each message
  int recording_changes = 0;
  int stopping = 0;
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
  // Connects and is welcomed with `captures`; returns what is said after the hello.
  std::vector<std::string> Begin(std::vector<CaptureResume> captures = {}) {
    session_.Start();
    return WelcomeNow(std::move(captures));
  }
  std::vector<std::string> WelcomeNow(std::vector<CaptureResume> captures = {}) {
    EXPECT_THAT(aggregator_.TakeSent(), ::testing::ElementsAre("hello agent-1"));
    Welcome welcome;
    welcome.captures = std::move(captures);
    aggregator_.listener().OnWelcome(welcome);
    return aggregator_.TakeSent();
  }
  void ReportWorker(uint32_t pid, std::string detail = "") {
    WorkerInfo info;
    info.identity.pid = pid;
    info.detail = std::move(detail);
    session_.OnWorker(info);
  }
  void ReportStatus(uint32_t pid, CaptureWorkerState state, uint64_t read) {
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
  RecordingObserver observer_;
  ControlSession session_{Info(), aggregator_.connector(), clock_, runner_, random_, observer_};
};

}  // namespace neurontrace
