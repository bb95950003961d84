// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/on_demand_capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "agent/source/neuron/tap/fake_proc.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using State = FrameworkTraceState;

// A recorder whose traces have the states that a test gives them.
class FakeRecorder final : public FrameworkRecorder {
 public:
  explicit FakeRecorder(std::string_view framework = "pytorch") : framework_(framework) {}
  std::string_view framework() const override { return framework_; }
  void Begin(const FrameworkOrder& order) override { orders.push_back(order); }
  void OnFile(const CaptureId&, std::string_view name) override { files.emplace_back(name); }
  void Stop(const CaptureId&) override { ++stops; }
  void Poll() override {}
  std::vector<FrameworkTrace> Traces(const CaptureId&) const override {
    std::vector<FrameworkTrace> traces;
    for (const auto& [pid, state] : states) traces.push_back({{.pid = pid}, "pytorch", state, ""});
    return traces;
  }
  bool IsFileOf(const CaptureId&, std::string_view name) const override { return name == "own"; }
  void Forget(const CaptureId&) override { ++forgotten; }

  std::vector<FrameworkOrder> orders;
  std::vector<std::string> files;
  std::map<uint32_t, State> states;
  int stops = 0;
  int forgotten = 0;

 private:
  const std::string_view framework_;
};

class FakeWorkers final : public CaptureParticipants {
 public:
  bool Records(const CaptureId&) const override { return true; }
  std::vector<WorkerIdentity> WorkersOf(const CaptureId&) const override { return workers; }
  std::vector<WorkerIdentity> workers;
};

class OnDemandCaptureTest : public ::testing::Test {
 protected:
  OnDemandCaptureTest() {
    spec_.filter.frameworks = {"pytorch"};
    spec_.timing.duration_ns = 5;
    // The second is the entry of the instance's files, and no process.
    participants_.workers = {{.pid = 8}, {.pid = 0}, {.pid = 7}, {.pid = 8}};
  }
  OnDemandCapture Make(std::vector<FrameworkRecorder*> recorders) {
    return OnDemandCapture(capture_, spec_, std::move(recorders), participants_,
                           ProcFiles(proc_.root()));
  }

  // Adds a process that has the files mapped.
  WorkerIdentity AddWorker(uint32_t pid, std::vector<std::string> mapped) {
    proc_.Put({.pid = pid, .start_time_ticks = pid * 10, .mapped = std::move(mapped)});
    return {.pid = pid, .start_time_ticks = pid * 10};
  }

  FakeProc proc_;
  FakeClock clock_;
  SeededRandom random_{1};
  const CaptureId capture_ = CaptureId::Make(clock_, random_);
  CaptureSpec spec_;
  FakeWorkers participants_;
  FakeRecorder recorder_;
};

TEST_F(OnDemandCaptureTest, OrdersTheProcessesOfTheCaptureOnce) {
  {
    OnDemandCapture capture = Make({&recorder_});
    capture.Begin({.named = true, .monotonic_ns = 1, .realtime_ns = 77});
    capture.Begin({.named = true, .monotonic_ns = 1, .realtime_ns = 78});
    ASSERT_EQ(recorder_.orders.size(), 1u);
    EXPECT_EQ(recorder_.orders[0].begin_realtime_ns, 77u);
    EXPECT_EQ(recorder_.orders[0].duration_ns, 5u);
    ASSERT_EQ(recorder_.orders[0].workers.size(), 2u);
    EXPECT_EQ(recorder_.orders[0].workers[0].pid, 7u);
    capture.Stop();
    capture.Stop();
    EXPECT_EQ(recorder_.stops, 1);
  }
  EXPECT_EQ(recorder_.forgotten, 1);
}

TEST_F(OnDemandCaptureTest, AFrameworkWithoutARecorderHasFailedEverywhere) {
  OnDemandCapture capture = Make({});
  capture.Begin({});
  const auto traces = capture.Traces();
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].state, State::kFailed);
  EXPECT_THAT(traces[0].detail, HasSubstr("--kineto-dir"));
  EXPECT_FALSE(capture.IsAwaited());
}

TEST_F(OnDemandCaptureTest, EachFrameworkHasItsOwnRecorderAndItsOwnReason) {
  spec_.filter.frameworks = {"pytorch", "xla"};
  OnDemandCapture capture = Make({&recorder_});
  capture.Begin({});
  EXPECT_EQ(recorder_.orders.size(), 1u);
  const auto traces = capture.Traces();
  ASSERT_EQ(traces.size(), 2u);
  EXPECT_EQ(traces[0].framework, "xla");
  EXPECT_THAT(traces[0].detail, HasSubstr("--framework-dir"));
}

TEST_F(OnDemandCaptureTest, AsksEachWorkerForTheFrameworksThatItHas) {
  const std::string torch = "/x/torch/lib/libtorch_cpu.so";
  const std::string jax = "/x/jaxlib/libjax_common.so";
  const WorkerIdentity of_torch = AddWorker(1, {torch});
  const WorkerIdentity of_jax = AddWorker(2, {jax});
  const WorkerIdentity of_both = AddWorker(3, {jax, torch});
  const WorkerIdentity of_none = AddWorker(4, {"/usr/bin/python3"});
  // Another process has its pid now.
  WorkerIdentity of_the_past = AddWorker(5, {torch});
  of_the_past.start_time_ticks = 7;
  const WorkerIdentity unseen = {.pid = 6};
  participants_.workers = {of_torch, of_jax, of_both, of_none, of_the_past, unseen};
  spec_.filter.frameworks = {"pytorch", "xla"};
  FakeRecorder xla("xla");
  OnDemandCapture capture = Make({&recorder_, &xla});
  capture.Begin({});
  EXPECT_THAT(recorder_.orders.at(0).workers,
              UnorderedElementsAre(of_torch, of_both, of_none, of_the_past, unseen));
  EXPECT_THAT(xla.orders.at(0).workers,
              UnorderedElementsAre(of_jax, of_both, of_none, of_the_past, unseen));

  participants_.workers.push_back(AddWorker(7, {jax}));
  capture.Poll();
  ASSERT_EQ(capture.Traces().size(), 1u) << "nobody misses PyTorch there";
  EXPECT_EQ(capture.Traces()[0].framework, "xla");
}

TEST_F(OnDemandCaptureTest, OneFrameworkIsAskedForEverywhere) {
  participants_.workers = {AddWorker(1, {"/x/jaxlib/libjax_common.so"})};
  OnDemandCapture capture = Make({&recorder_});
  capture.Begin({});
  EXPECT_EQ(recorder_.orders.at(0).workers.size(), 1u) << "its recorder explains what is missing";
}

TEST_F(OnDemandCaptureTest, AWorkerThatJoinsLaterIsTooLate) {
  OnDemandCapture capture = Make({&recorder_});
  capture.Begin({});
  participants_.workers.push_back({.pid = 9});
  capture.Poll();
  capture.Poll();
  const auto traces = capture.Traces();
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces[0].worker.pid, 9u);
  EXPECT_EQ(traces[0].state, State::kTooLate);
}

TEST_F(OnDemandCaptureTest, OnlyFinalOutcomesWithoutAFileSpeakAgainstTheCapture) {
  OnDemandCapture capture = Make({&recorder_});
  capture.Begin({});
  recorder_.states = {
      {1, State::kFileSeen}, {2, State::kAsked}, {3, State::kBusy}, {4, State::kNotListening}};
  EXPECT_TRUE(capture.IsAwaited());
  std::vector<Remark> remarks;
  capture.AddRemarks(remarks);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0].kind, RemarkKind::kNoFrameworkTrace);
  EXPECT_EQ(remarks[0].count, 2u);
  EXPECT_EQ(remarks[0].details[0], "pid 3 pytorch: busy");
  recorder_.states.erase(2);
  EXPECT_FALSE(capture.IsAwaited());
}

}  // namespace
}  // namespace neurontrace
