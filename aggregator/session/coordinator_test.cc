// SPDX-License-Identifier: Apache-2.0
// The life of captures over agents that come, go and fail, on a clock that the test advances.
#include "aggregator/session/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kSecondNs = 1'000'000'000;

AgentInfo Agent(const std::string& id) {
  return {.protocol_version = kProtocolVersion, .agent_id = id, .instance_id = "i-" + id};
}

WorkerIdentity WorkerOf(const std::string& agent_id, uint32_t pid = 1) {
  return {.instance_id = "i-" + agent_id, .boot_id = "boot", .pid = pid};
}

class CoordinatorTest : public ::testing::Test {
 protected:
  CoordinatorTest() { Restart(); }

  // A new coordinator that knows what the old one persisted, as after a restart of the aggregator.
  void Restart() {
    coordinator_ = std::make_unique<Coordinator>(
        clock_, random_,
        CoordinatorOutputs{
            .send =
                [this](const std::string& agent_id, ConnectionId connection,
                       const CaptureOrder& order) {
                  EXPECT_EQ(connection, connections_[agent_id]);
                  orders_.push_back(
                      agent_id + (std::holds_alternative<StartOrder>(order) ? " start" : " stop"));
                },
            .persist =
                [this](const CaptureRecord& record, bool) {
                  if (disk_full_) return ResourceExhausted("the disk is full");
                  saved_[record.id] = record;
                  return absl::OkStatus();
                },
            .changed = [this](const CaptureRecord& record) { said_[record.id] = record; },
            .agent_changed = [](const KnownAgent&) {},
            .worker_changed = [](const std::string&, const WorkerInfo&) {}});
    for (const auto& [id, record] : saved_) {
      if (!HasEnded(record.state)) coordinator_->RestoreCapture(record);
    }
  }

  std::vector<ResumedCapture> Connect(const std::string& agent_id) {
    connections_[agent_id] = ++last_connection_;
    return coordinator_->Connect(Agent(agent_id), last_connection_).value();
  }
  void Disconnect(const std::string& agent_id) {
    coordinator_->Disconnect(agent_id, connections_[agent_id]);
  }
  void Report(const std::string& agent_id, const CaptureId& capture, CaptureWorkerState state,
              const std::string& detail = "") {
    EXPECT_TRUE(coordinator_
                    ->OnWorkerStatus(agent_id, connections_[agent_id],
                                     {.capture_id = capture,
                                      .worker = WorkerOf(agent_id),
                                      .state = state,
                                      .detail = detail})
                    .ok());
  }
  void ReportAgent(const std::string& agent_id, const CaptureId& capture, uint32_t matched,
                   bool finished) {
    EXPECT_TRUE(
        coordinator_->OnAgentStatus(agent_id, connections_[agent_id], capture, matched, finished)
            .ok());
  }
  CaptureId Start(CaptureSpec spec = {}) { return coordinator_->StartCapture(spec).value().id; }
  void Advance(uint64_t ns) {
    clock_.AdvanceNs(ns);
    coordinator_->Tick();
  }

  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<Coordinator> coordinator_;
  std::map<std::string, ConnectionId> connections_;
  ConnectionId last_connection_ = 0;
  std::vector<std::string> orders_;
  std::map<CaptureId, CaptureRecord> saved_;
  std::map<CaptureId, CaptureRecord> said_;
  bool disk_full_ = false;
};

TEST_F(CoordinatorTest, ACaptureEndsCompleteWhenEveryAgentHasFinished) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  EXPECT_THAT(orders_, ElementsAre("a start", "b start"));
  for (const char* agent : {"a", "b"}) {
    ReportAgent(agent, id, 1, false);
    Report(agent, id, CaptureWorkerState::kRecording);
  }
  EXPECT_EQ(coordinator_->StopCapture(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a start", "b start", "a stop", "b stop"));
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  Report("b", id, CaptureWorkerState::kComplete);
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_EQ(said_[id].state, CaptureState::kComplete);
  EXPECT_THAT(saved_[id].warnings, IsEmpty());
  EXPECT_EQ(coordinator_->FindRunning(id), nullptr);
  EXPECT_EQ(coordinator_->StopCapture(id).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CoordinatorTest, AWorkerThatItsAgentFinishesWithoutIsLost) {
  Connect("a");
  const CaptureId id = Start();
  Report("a", id, CaptureWorkerState::kRecording);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  ReportAgent("a", id, 1, true);  // started again, and the worker is gone
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  ASSERT_EQ(saved_[id].workers.size(), 1u);
  EXPECT_EQ(saved_[id].workers[0].state, CaptureWorkerState::kLost);
  ASSERT_EQ(saved_[id].warnings.size(), 1u);
  EXPECT_THAT(saved_[id].warnings[0], HasSubstr("was lost while recording"));
}

TEST_F(CoordinatorTest, StopsWhenTheDurationIsOver) {
  Connect("a");
  const CaptureId id = Start({.duration_ns = 5 * kSecondNs});
  Advance(5 * kSecondNs - 1);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  Advance(1);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a start", "a stop"));
}

TEST_F(CoordinatorTest, AsksOnlyTheInstancesThatAreSelected) {
  Connect("a");
  Connect("b");
  Start({.instance_ids = {"i-b"}});
  EXPECT_THAT(orders_, ElementsAre("b start"));
  EXPECT_THAT(Connect("a"), IsEmpty());
}

TEST_F(CoordinatorTest, LateAgentsJoinWhileItRecordsAndNotAfter) {
  const CaptureId id = Start();
  const auto resumed = Connect("late");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0].start.capture_id, id);
  EXPECT_FALSE(resumed[0].stopping);
  EXPECT_EQ(saved_[id].agents.size(), 1u);  // durable before the agent records
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_THAT(Connect("later"), IsEmpty());
  const auto again = Connect("late");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].stopping);
}

TEST_F(CoordinatorTest, AnAgentThatDoesNotReturnLeavesTheCaptureIncomplete) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  ReportAgent("a", id, 1, false);
  ReportAgent("b", id, 1, false);
  Report("a", id, CaptureWorkerState::kRecording);
  Report("b", id, CaptureWorkerState::kRecording);
  Disconnect("b");
  Advance(100 * kSecondNs);  // while it records there is time
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  Advance(limits::kAgentReturnMaxNs - 1);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  Advance(1);
  const CaptureRecord& record = saved_[id];
  EXPECT_EQ(record.state, CaptureState::kIncomplete);
  EXPECT_TRUE(record.agents[1].vanished);
  EXPECT_EQ(record.workers[1].state, CaptureWorkerState::kLost);
  EXPECT_THAT(record.warnings, Contains(HasSubstr("agent b on i-b is gone")));
}

TEST_F(CoordinatorTest, AnAgentThatReturnsInTimeFinishes) {
  Connect("a");
  const CaptureId id = Start();
  ReportAgent("a", id, 1, false);
  Disconnect("a");
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Advance(limits::kAgentReturnMaxNs / 2);
  EXPECT_TRUE(Connect("a").front().stopping);
  Advance(limits::kAgentReturnMaxNs);
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(CoordinatorTest, GivesUpOnAnAgentThatIsConnectedAndSaysNothing) {
  Connect("a");
  const CaptureId id = Start();
  ReportAgent("a", id, 1, false);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Advance(limits::kAgentSilenceMaxNs - 1);
  Report("a", id, CaptureWorkerState::kStopping);  // it is still at it
  Advance(limits::kAgentSilenceMaxNs - 1);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  Advance(1);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
}

TEST_F(CoordinatorTest, ACaptureThatMatchedNothingSaysWhatThereWas) {
  Connect("a");
  ASSERT_TRUE(
      coordinator_
          ->OnWorker("a", connections_["a"], {.identity = WorkerOf("a", 4711), .job = "llama"})
          .ok());
  const CaptureId id = Start({.job = "lama"});
  ReportAgent("a", id, 0, false);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  ReportAgent("a", id, 0, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].warnings,
              ElementsAre(HasSubstr("no worker matched; 1 workers exist: i-a")));
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("(job llama)")));
}

TEST_F(CoordinatorTest, ACaptureWithoutAgentsEndsWhenItIsStopped) {
  const CaptureId id = Start();
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("no agent is connected")));
}

TEST_F(CoordinatorTest, WorkersThatRefusedOrDiedMakeItIncomplete) {
  for (const CaptureWorkerState state : {CaptureWorkerState::kRefused, CaptureWorkerState::kLost}) {
    Connect("a");
    const CaptureId id = Start();
    ReportAgent("a", id, 1, false);
    Report("a", id, state, "another profiler is at work");
    ASSERT_TRUE(coordinator_->StopCapture(id).ok());
    ReportAgent("a", id, 1, true);
    EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
    EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("another profiler is at work")));
  }
}

TEST_F(CoordinatorTest, ContinuesAfterARestartWithTheTimeThatIsLeft) {
  Connect("a");
  const CaptureId id = Start({.duration_ns = 60 * kSecondNs});
  ReportAgent("a", id, 1, false);
  clock_.AdvanceNs(20 * kSecondNs);
  Restart();
  clock_.AdvanceNs(20 * kSecondNs);
  const auto resumed = Connect("a");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0].start.capture_id, id);
  Advance(20 * kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kStopping);
  Restart();
  EXPECT_TRUE(Connect("a").front().stopping);
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(CoordinatorTest, ACaptureIsNotStartedWhenItCannotBeRemembered) {
  Connect("a");
  disk_full_ = true;
  EXPECT_EQ(coordinator_->StartCapture({}).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(orders_, IsEmpty());
  EXPECT_THAT(coordinator_->Running(), IsEmpty());
}

TEST_F(CoordinatorTest, TheEndIsWrittenAgainWhenTheDiskRefused) {
  Connect("a");
  const CaptureId id = Start();
  ReportAgent("a", id, 1, false);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  disk_full_ = true;
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_NE(coordinator_->FindRunning(id), nullptr);
  disk_full_ = false;
  Advance(2 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_EQ(coordinator_->FindRunning(id), nullptr);
}

TEST_F(CoordinatorTest, RefusesReportsOfASupersededConnection) {
  Connect("a");
  const ConnectionId old = connections_["a"];
  Connect("a");
  EXPECT_EQ(coordinator_->OnHeartbeat("a", old).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(coordinator_->OnAgentStatus("a", old, {}, 1, true).code(), absl::StatusCode::kAborted);
}

TEST_F(CoordinatorTest, BoundsTheCapturesThatRunAtOnce) {
  for (uint32_t i = 0; i < limits::kCapturesRunningMax; ++i) Start();
  EXPECT_EQ(coordinator_->StartCapture({}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(CoordinatorTest, AnAgentCannotSpeakForAnotherInstance) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  ASSERT_TRUE(
      coordinator_
          ->OnWorkerStatus("a", connections_["a"], {.capture_id = id, .worker = WorkerOf("b")})
          .ok());
  EXPECT_THAT(coordinator_->FindRunning(id)->workers, IsEmpty());
}

TEST(CaptureSession, CountsTheWarningsBeyondTheLimit) {
  CaptureSession session(CaptureId(), {}, {});
  for (uint32_t i = 0; i < limits::kCaptureWarningsMax + 9; ++i) session.Warn(std::to_string(i));
  session.Warn("0");  // said before
  EXPECT_EQ(session.record().warnings.size(), limits::kCaptureWarningsMax);
  EXPECT_EQ(session.record().warnings.back(), "and 10 more warnings");
}

}  // namespace
}  // namespace neurontrace
