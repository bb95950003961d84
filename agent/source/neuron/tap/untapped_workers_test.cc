// SPDX-License-Identifier: Apache-2.0
// Goal: a worker that no tap speaks for is in the inventory with what to do about it, refused by
// captures that select it, and gone when it is; and nobody else is.
#include "agent/source/neuron/tap/untapped_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "agent/source/neuron/tap/fake_proc.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "agent/source/neuron/tap_source_fixture.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ReportedCommandTest, OmitsArgumentsUnlessConfigured) {
  EXPECT_EQ(ReportedCommand("/usr/bin/python3 train.py --token secret", false), "/usr/bin/python3");
  EXPECT_EQ(ReportedCommand("python train.py --x", true), "python train.py --x");
  EXPECT_EQ(ReportedCommand("", false), "");
}

// Processes with a tap, by pid.
class FakeTappedWorkers final : public TappedWorkers {
 public:
  bool HasWorker(uint32_t pid, uint64_t) const override { return pids.contains(pid); }

  std::set<uint32_t> pids;
};

class UntappedWorkersTest : public ::testing::Test {
 protected:
  UntappedWorkersTest() : runner_(clock_) {
    workers_ = std::make_unique<UntappedWorkers>(
        UntappedWorkers::Options{.instance_id = "i-0abc",
                                 .boot_id = "boot",
                                 .socket = "/run/x.sock",
                                 .tap_library = "/opt/libneurontrace_tap.so",
                                 .proc_root = proc_.root()},
        runner_, clock_, listener_, tapped_);
  }
  void Seconds(uint64_t seconds) { runner_.AdvanceNs(seconds * 1'000'000'000); }
  const WorkerInfo* Worker(uint32_t pid) const {
    for (const auto& [identity, worker] : listener_.workers) {
      if (identity.pid == pid) return &worker;
    }
    return nullptr;
  }
  static FakeProc::Process Untapped() { return {.pid = 10, .mapped = {FakeProc::kRuntime}}; }
  static FakeProc::Process Tapped() {
    return {.pid = 20, .mapped = {FakeProc::kRuntime, FakeProc::kTap}};
  }

  FakeProc proc_;
  FakeClock clock_;
  FakeTaskRunner runner_;
  RecordingListener listener_;
  FakeTappedWorkers tapped_;
  std::unique_ptr<UntappedWorkers> workers_;
  const CaptureId capture_ = *CaptureId::FromBytes("0123456789abcdef");
};

TEST_F(UntappedWorkersTest, ExplainsHowToLoadMissingTap) {
  FakeProc::Process process = Untapped();
  process.environment = {"SLURM_JOB_ID=4711", "NEURONTRACE_LABELS=team=search"};
  proc_.Put(process);
  Seconds(2);
  const WorkerInfo* const worker = Worker(10);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker->state, WorkerState::kNoTap);
  EXPECT_EQ(worker->identity,
            (WorkerIdentity{
                .instance_id = "i-0abc", .boot_id = "boot", .pid = 10, .start_time_ticks = 100}));
  EXPECT_EQ(worker->command, "python");
  EXPECT_EQ(worker->job, "4711");
  EXPECT_EQ(worker->job_facts,
            (std::vector<KeyValue>{{"label:team", "search"}, {"slurm", "4711"}}));
  EXPECT_THAT(worker->detail, HasSubstr("LD_PRELOAD=/opt/libneurontrace_tap.so"));
  proc_.Remove(10);
  Seconds(6);
  EXPECT_EQ(Worker(10), nullptr);
  EXPECT_EQ(listener_.gone, 1);
}

TEST_F(UntappedWorkersTest, ExplainsIneffectivePreload) {
  FakeProc::Process process = Untapped();
  process.environment = {"LD_PRELOAD=/nowhere/libneurontrace_tap.so"};
  proc_.Put(process);
  Seconds(2);
  ASSERT_NE(Worker(10), nullptr);
  EXPECT_EQ(Worker(10)->state, WorkerState::kNoTap);
  EXPECT_THAT(Worker(10)->detail, HasSubstr("in its container"));
}

// A script that sets LD_PRELOAD to its allocator takes the tap out.
TEST_F(UntappedWorkersTest, NamesProgramThatReplacedPreload) {
  proc_.Put({.pid = 5,
             .command = "bash run.sh",
             .environment = {"LD_PRELOAD=/opt/neurontrace/lib/libneurontrace_tap.so"}});
  proc_.Put({.pid = 6, .parent = 5, .command = "sh"});
  FakeProc::Process process = Untapped();
  process.parent = 6;
  process.environment = {"LD_PRELOAD=/usr/lib/libtcmalloc.so.4"};
  proc_.Put(process);
  process.pid = 11;
  process.environment = {"HOME=/root"};
  proc_.Put(process);
  process.pid = 12;
  process.parent = 1;
  process.environment = {"LD_PRELOAD=/usr/lib/libtcmalloc.so.4"};
  proc_.Put(process);
  Seconds(2);
  ASSERT_NE(Worker(10), nullptr);
  EXPECT_THAT(Worker(10)->detail,
              AllOf(HasSubstr("process 5"),
                    HasSubstr("LD_PRELOAD=/opt/neurontrace/lib/libneurontrace_tap.so"),
                    HasSubstr("replaced by LD_PRELOAD=/usr/lib/libtcmalloc.so.4")));
  ASSERT_NE(Worker(11), nullptr);
  EXPECT_THAT(Worker(11)->detail, AllOf(HasSubstr("process 5"), HasSubstr("was dropped")));
  ASSERT_NE(Worker(12), nullptr);
  EXPECT_THAT(Worker(12)->detail,
              HasSubstr("LD_PRELOAD=/opt/libneurontrace_tap.so:/usr/lib/libtcmalloc.so.4"));
}

TEST_F(UntappedWorkersTest, ReportsSocketPathOfTap) {
  FakeProc::Process process = Tapped();
  process.environment = {"NEURONTRACE_AGENT_SOCKET=/run/typo.sock"};
  proc_.Put(process);
  process.pid = 21;
  process.environment = {"HOME=/root"};
  proc_.Put(process);
  process.pid = 22;
  process.environment = {"NEURONTRACE_AGENT_SOCKET=/" + std::string(200, 'x')};
  proc_.Put(process);
  process.pid = 23;
  process.environment = {"NEURONTRACE_AGENT_SOCKET=/run/x.sock"};
  proc_.Put(process);
  Seconds(2);  // they cannot come by themselves
  ASSERT_NE(Worker(20), nullptr);
  EXPECT_EQ(Worker(23), nullptr);
  Seconds(28);
  EXPECT_EQ(Worker(20)->state, WorkerState::kNoTap);
  EXPECT_THAT(Worker(20)->detail, AllOf(HasSubstr("/run/typo.sock"), HasSubstr("/run/x.sock"),
                                        Not(HasSubstr("nrt_init"))));
  ASSERT_NE(Worker(21), nullptr);
  EXPECT_THAT(Worker(21)->detail,
              AllOf(HasSubstr("/run/neurontrace/agent.sock"), HasSubstr("not set")));
  ASSERT_NE(Worker(22), nullptr);
  EXPECT_THAT(Worker(22)->detail, AllOf(HasSubstr("201 bytes"), HasSubstr("at most 107")));
  ASSERT_NE(Worker(23), nullptr);
  EXPECT_EQ(Worker(23)->state, WorkerState::kNotInitialised);
  EXPECT_THAT(Worker(23)->detail, HasSubstr("nrt_init has not been called"));
}

TEST_F(UntappedWorkersTest, AllowsTapTimeToConnect) {
  proc_.Put(Tapped());
  Seconds(11);
  EXPECT_EQ(Worker(20), nullptr);  // taps come back to an agent that is new
  Seconds(12);
  ASSERT_NE(Worker(20), nullptr);
  EXPECT_EQ(Worker(20)->state, WorkerState::kNotInitialised);
  FakeProc::Process young = Tapped();
  young.pid = 21;
  proc_.Put(young);
  Seconds(5);
  EXPECT_EQ(Worker(21), nullptr);
  Seconds(10);
  EXPECT_NE(Worker(21), nullptr);
}

TEST_F(UntappedWorkersTest, AWorkerWhoseTapConnectsIsItsTaps) {
  proc_.Put(Tapped());
  Seconds(30);
  ASSERT_NE(Worker(20), nullptr);
  tapped_.pids.insert(20);
  Seconds(10);
  EXPECT_EQ(listener_.gone, 0);  // the tap has its place
  EXPECT_EQ(workers_->size(), 0u);
  // A tap that was here and is gone has called nrt_init.
  tapped_.pids.clear();
  Seconds(60);
  EXPECT_EQ(workers_->size(), 0u);
}

TEST_F(UntappedWorkersTest, WorkerOfOtherAgentIsNotReported) {
  FakeProc::Process theirs = Untapped();
  theirs.environment = {"NEURONTRACE_AGENT_SOCKET=/run/other.sock"};
  proc_.Put(theirs);
  proc_.PutSockets("self", {"/run/neurontrace/agent.sock.old", "/run/other.sock"});
  FakeProc::Process lost = Tapped();
  lost.environment = {"NEURONTRACE_AGENT_SOCKET=/nowhere/agent.sock"};
  proc_.Put(lost);
  Seconds(30);
  EXPECT_EQ(Worker(10), nullptr);
  EXPECT_NE(Worker(20), nullptr);  // there is no other agent there
}

// Looking at it may wait for the file system of whoever made it.
TEST_F(UntappedWorkersTest, DoesNotOpenPathsNamedByJobs) {
  const std::string file = proc_.root() + "/agent.sock";
  std::ofstream(file) << "";
  FakeProc::Process process = Untapped();
  process.environment = {"NEURONTRACE_AGENT_SOCKET=" + file};
  proc_.Put(process);
  Seconds(2);
  EXPECT_NE(Worker(10), nullptr) << "a file is no agent";
}

TEST_F(UntappedWorkersTest, CapturesThatSelectItAreRefused) {
  FakeProc::Process process = Untapped();
  process.environment = {"SLURM_JOB_ID=4711"};
  proc_.Put(process);
  Seconds(2);
  CaptureSpec spec;
  spec.selection.job = "other";
  workers_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  EXPECT_TRUE(listener_.statuses.empty());
  workers_->Forget(capture_);
  spec.selection.job = "4711";
  workers_->ApplyOrder(SourceOrder::Start(capture_, spec, {}));
  EXPECT_EQ(listener_.statuses[capture_].state, CaptureWorkerState::kRefused);
  EXPECT_EQ(listener_.statuses[capture_].obstacle, CaptureObstacle::kNoTap);
  EXPECT_THAT(listener_.statuses[capture_].detail, HasSubstr("LD_PRELOAD"));
  // One that appears while the capture runs, too; none once it stops.
  process.pid = 11;
  proc_.Put(process);
  Seconds(6);
  EXPECT_EQ(listener_.statuses[capture_].worker.pid, 11u);
  workers_->Stop(capture_, Source::kStopNow);
  EXPECT_TRUE(workers_->IsFinished(capture_));
  process.pid = 12;
  proc_.Put(process);
  Seconds(6);
  EXPECT_EQ(listener_.states.size(), 2u);
}

TEST_F(UntappedWorkersTest, UnconnectedTapHasDistinctObstacle) {
  proc_.Put(Tapped());
  Seconds(30);
  workers_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  EXPECT_EQ(listener_.statuses[capture_].obstacle, CaptureObstacle::kNotInitialised);
}

TEST_F(UntappedWorkersTest, ReportsWorkerAgainWhenOtherAgentIsGone) {
  FakeProc::Process theirs = Untapped();
  theirs.environment = {"NEURONTRACE_AGENT_SOCKET=/run/other.sock"};
  proc_.Put(theirs);
  proc_.PutSockets("10", {"/run/other.sock"});  // of its pod alone
  workers_->ApplyOrder(SourceOrder::Start(capture_, {}, {}));
  Seconds(30);
  EXPECT_EQ(Worker(10), nullptr);
  proc_.PutSockets("10", {});
  Seconds(6);
  EXPECT_NE(Worker(10), nullptr);
  EXPECT_EQ(listener_.statuses[capture_].obstacle, CaptureObstacle::kNoTap);
}

}  // namespace
}  // namespace neurontrace
