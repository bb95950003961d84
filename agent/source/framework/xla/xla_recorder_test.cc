// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xla_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "agent/source/framework/on_demand/recorder_fixture.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = FrameworkTraceState;
using Kind = XlaAnswer::Kind;

// Servers of workers, whose answers a test gives.
class FakeXlaCalls final : public XlaCalls {
 public:
  void Begin(const XlaOrder& order, XlaAnswers& answers) override {
    EXPECT_TRUE(open.emplace(order.session, order).second);
    answers_ = &answers;
  }
  void End(const std::string& session) override { ended.push_back(session); }
  void Cancel(const std::string& session) override { cancelled.push_back(session); }

  void Answer(const std::string& session, const XlaAnswer& answer) {
    ASSERT_EQ(open.erase(session), 1u);
    answers_->OnAnswer(session, answer);
  }

  std::map<std::string, XlaOrder> open;
  std::vector<std::string> ended;
  std::vector<std::string> cancelled;

 private:
  XlaAnswers* answers_ = nullptr;
};

// Workers 40 to 42 listen on port 9000 plus their pid.
class XlaRecorderTest : public RecorderFixture {
 protected:
  XlaRecorderTest() {
    auto calls = std::make_unique<FakeXlaCalls>();
    calls_ = calls.get();
    recorder_ = std::make_unique<XlaRecorder>(proc_.root(), std::move(calls), clock_, metrics_);
    std::filesystem::create_directories(proc_.root() + "/self/ns");
    std::filesystem::create_symlink("net:[1]", proc_.root() + "/self/ns/net");
    for (const uint32_t pid : {40u, 41u, 42u}) PutWorker(pid, true);
  }
  void PutWorker(uint32_t pid, bool listens) {
    proc_.Put({.pid = pid,
               .start_time_ticks = pid * 10,
               .environment = {fmt::format("NEURONTRACE_XLA_PORT={}", 9'000 + pid)}});
    const std::string process = fmt::format("{}/{}", proc_.root(), pid);
    for (const char* folder : {"/ns", "/fd", "/net"}) {
      std::filesystem::create_directories(process + folder);
    }
    std::filesystem::create_symlink("net:[1]", process + "/ns/net");
    std::filesystem::create_symlink(fmt::format("socket:[{}]", pid), process + "/fd/3");
    proc_.Write(pid, "net/tcp",
                listens
                    ? fmt::format("sl\n0: 00000000:{:04X} 00000000:0000 0A 0:0 0:0 0 0 0 {} 1\n",
                                  9'000 + pid, pid)
                    : "");
  }
  std::string SessionOf(uint32_t pid) const {
    return fmt::format("neurontrace-xla-{}_pid_{}", capture_.ToString(), pid);
  }
  // Has worker 40 answer an order with an error, `after_ns` after it.
  FrameworkTrace TraceAfter(absl::Status status, uint64_t after_ns = 0) {
    recorder_->Forget(capture_);
    calls_->open.clear();
    recorder_->Begin(Order({Worker(40)}));
    clock_.AdvanceNs(after_ns);
    calls_->Answer(SessionOf(40), {Kind::kFailed, std::move(status)});
    return TraceOf(40);
  }

  FrameworkRecorder& recorder() override { return *recorder_; }

  FakeXlaCalls* calls_ = nullptr;  // the recorder's
  std::unique_ptr<XlaRecorder> recorder_;
};

TEST_F(XlaRecorderTest, AsksEachWorkerAtItsPortForThePlannedMoment) {
  FrameworkOrder order = Order({Worker(40), Worker(41)});
  order.with_stacks = true;
  recorder_->Begin(order);
  recorder_->Begin(order);
  ASSERT_EQ(calls_->open.size(), 2u);
  const XlaOrder& asked = calls_->open.at(SessionOf(41));
  EXPECT_EQ(asked.address, "ipv4:127.0.0.1:9041");
  EXPECT_EQ(asked.begin_realtime_ns, order.begin_realtime_ns);
  EXPECT_EQ(asked.duration_ns, 20 * kSecondNs);
  EXPECT_EQ(asked.timeout_ns, 27 * kSecondNs + limits::kFrameworkFileWaitNs);
  EXPECT_TRUE(asked.with_stacks);
  EXPECT_EQ(StateOf(40), State::kAsked);
  EXPECT_EQ(metrics_.xla_orders, 2u);
}

TEST_F(XlaRecorderTest, ASavedAnswerIsSeenOnceItsFileIs) {
  recorder_->Begin(Order({Worker(40), Worker(41)}));
  Pass(27 * kSecondNs);
  recorder_->Stop(capture_);
  EXPECT_THAT(calls_->ended, IsEmpty()) << "it ends by itself";
  calls_->Answer(SessionOf(40), {Kind::kSaved, absl::OkStatus(), 9});
  EXPECT_EQ(StateOf(40), State::kRecording);
  EXPECT_TRUE(recorder_->IsFileOf(capture_, SessionOf(40) + "/worker.xplane.pb"));
  EXPECT_FALSE(recorder_->IsFileOf(capture_, "neurontrace-xla-0_pid_40/worker.xplane.pb"));
  EXPECT_FALSE(recorder_->IsFileOf(capture_, SessionOf(40)));
  recorder_->OnFile(capture_, "/traces/" + SessionOf(4) + "/worker.xplane.pb");
  EXPECT_EQ(StateOf(40), State::kRecording) << "that is the file of process 4";
  recorder_->OnFile(capture_, "/traces/" + SessionOf(40) + "/worker.xplane.pb");
  EXPECT_EQ(StateOf(40), State::kFileSeen);
  EXPECT_EQ(StateOf(41), State::kAsked);
  EXPECT_EQ(metrics_.xla_traces, 1u);
}

TEST_F(XlaRecorderTest, AWorkerThatWritesItsFileItselfIsWaitedFor) {
  recorder_->Begin(Order({Worker(40), Worker(41)}));
  Pass(28 * kSecondNs);
  recorder_->Stop(capture_);
  calls_->Answer(SessionOf(40), {Kind::kWithout});
  calls_->Answer(SessionOf(41), {Kind::kWithout});
  const std::string file = "/t/plugins/profile/" + SessionOf(40) + "/worker.xplane.pb";
  EXPECT_TRUE(recorder_->IsFileOf(capture_, file));
  recorder_->OnFile(capture_, file);
  EXPECT_EQ(StateOf(40), State::kFileSeen);
  Pass(limits::kFrameworkFileWaitNs - 1);
  EXPECT_EQ(StateOf(41), State::kRecording);
  Pass(1);
  EXPECT_EQ(StateOf(41), State::kNotSeen);
  EXPECT_THAT(TraceOf(41).detail, HasSubstr("with the rights of the job"));
}

TEST_F(XlaRecorderTest, ReportsTheReasonForAWorkerThatIsNotAsked) {
  PutWorker(43, false);
  WorkerIdentity successor = Worker(41);
  successor.start_time_ticks = 1;
  recorder_->Begin(Order({Worker(40), successor, Worker(43), Worker(99)}));
  EXPECT_EQ(calls_->open.size(), 1u);
  EXPECT_EQ(StateOf(41), State::kNotListening);
  EXPECT_THAT(TraceOf(41).detail, HasSubstr("has ended"));
  EXPECT_EQ(StateOf(43), State::kNotListening);
  EXPECT_THAT(TraceOf(43).detail, HasSubstr("jax.profiler.start_server(9043)"));
  EXPECT_EQ(StateOf(99), State::kNotListening);
}

TEST_F(XlaRecorderTest, OrdersThatCannotBeMetAreNotGiven) {
  recorder_->Begin(Order({Worker(40)}, XlaRecorder::kPrepareNs - 1));
  EXPECT_EQ(StateOf(40), State::kTooLate);
  // An agent that was restarted finds the file of its earlier run.
  recorder_->OnFile(capture_, SessionOf(40) + "/worker.xplane.pb");
  EXPECT_EQ(StateOf(40), State::kFileSeen);
  recorder_->Forget(capture_);
  FrameworkOrder order = Order({Worker(40)});
  order.steps = 5;
  recorder_->Begin(order);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("by time"));
  recorder_->Forget(capture_);
  order = Order({Worker(40)});
  order.duration_ns = limits::kXlaDurationNsMax + 1;
  recorder_->Begin(order);
  EXPECT_EQ(StateOf(40), State::kFailed);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("at most 60 s"));
  EXPECT_THAT(calls_->open, IsEmpty());
}

TEST_F(XlaRecorderTest, EachFailureHasItsOutcome) {
  const FrameworkTrace busy = TraceAfter(absl::InternalError("Another profiling session active."));
  EXPECT_EQ(busy.state, State::kBusy);
  EXPECT_EQ(TraceAfter(absl::AlreadyExistsError("a session")).state, State::kBusy);
  const FrameworkTrace other = TraceAfter(absl::InternalError("CUPTI"));
  EXPECT_EQ(other.state, State::kFailed);
  EXPECT_THAT(other.detail, HasSubstr("CUPTI"));
  const FrameworkTrace unknown = TraceAfter(absl::UnimplementedError("no such service"));
  EXPECT_EQ(unknown.state, State::kNotListening);
  EXPECT_THAT(unknown.detail, HasSubstr("ipv4:127.0.0.1:9040 is not XLA's"));
  EXPECT_EQ(TraceAfter(absl::UnavailableError("refused")).state, State::kNotListening);
  const FrameworkTrace dead = TraceAfter(absl::UnavailableError("reset"), 8 * kSecondNs);
  EXPECT_EQ(dead.state, State::kNotSeen);
  EXPECT_THAT(dead.detail, HasSubstr("before its answer: reset"));
  const FrameworkTrace large = TraceAfter(absl::ResourceExhaustedError("larger than max"));
  EXPECT_EQ(large.state, State::kFailed);
  EXPECT_THAT(large.detail, HasSubstr("may have 128 MiB"));
  EXPECT_EQ(TraceAfter(absl::DeadlineExceededError("")).state, State::kNotSeen);
  EXPECT_EQ(metrics_.xla_orders_failed, 8u);
}

TEST_F(XlaRecorderTest, AnswersThatAreNotKeptHaveFailed) {
  recorder_->Begin(Order({Worker(40), Worker(41)}));
  calls_->Answer(SessionOf(40), {Kind::kNotXSpace, absl::OkStatus(), 77});
  EXPECT_EQ(StateOf(40), State::kFailed);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("77 bytes that are not an XSpace"));
  calls_->Answer(SessionOf(41), {Kind::kNotSaved, absl::ResourceExhaustedError("no space"), 5});
  EXPECT_EQ(StateOf(41), State::kFailed);
  EXPECT_THAT(TraceOf(41).detail, HasSubstr("no space"));
  Pass(600 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kFailed) << "an outcome is final";
}

TEST_F(XlaRecorderTest, AStoppedCaptureEndsItsSessions) {
  recorder_->Begin(Order({Worker(40), Worker(41)}));
  Pass(9 * kSecondNs);
  recorder_->Stop(capture_);
  recorder_->Stop(capture_);
  EXPECT_THAT(calls_->ended, ElementsAre(SessionOf(40), SessionOf(41)));
  calls_->Answer(SessionOf(40), {Kind::kSaved, absl::OkStatus(), 9});
  Pass(limits::kFrameworkFileWaitNs - 1);
  EXPECT_THAT(calls_->cancelled, IsEmpty());
  Pass(1);
  EXPECT_THAT(calls_->cancelled, ElementsAre(SessionOf(41)));
  calls_->Answer(SessionOf(41), {Kind::kFailed, absl::CancelledError()});
  EXPECT_EQ(StateOf(41), State::kNotSeen);
  EXPECT_THAT(TraceOf(41).detail, HasSubstr("30 s"));
}

TEST_F(XlaRecorderTest, AForgottenCaptureGivesItsCallsUp) {
  recorder_->Begin(Order({Worker(40)}));
  recorder_->Forget(capture_);
  EXPECT_THAT(calls_->cancelled, ElementsAre(SessionOf(40)));
  calls_->Answer(SessionOf(40), {Kind::kFailed, absl::CancelledError()});
  EXPECT_THAT(recorder_->Traces(capture_), IsEmpty());
}

TEST_F(XlaRecorderTest, OpenAnswersShareOneLimit) {
  recorder_->Begin(Order({Worker(40), Worker(41), Worker(42)}));
  const size_t third = limits::kXlaAnswersBytesMax / 3;
  EXPECT_EQ(calls_->open.at(SessionOf(42)).answer_bytes_max, third);
  // A second capture gets what is left, which is nothing until one has answered.
  const CaptureId first = capture_;
  capture_ = CaptureId::Make(clock_, random_);
  recorder_->Begin(Order({Worker(40)}));
  EXPECT_EQ(StateOf(40), State::kFailed);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("256 MiB"));
  calls_->Answer(fmt::format("neurontrace-xla-{}_pid_40", first.ToString()),
                 {Kind::kFailed, absl::InternalError("x")});
  capture_ = CaptureId::Make(clock_, random_);
  recorder_->Begin(Order({Worker(40)}));
  EXPECT_EQ(calls_->open.at(SessionOf(40)).answer_bytes_max,
            limits::kXlaAnswersBytesMax - 2 * third);
}

}  // namespace
}  // namespace neurontrace
