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
      coordinator_->RestoreCapture(record);
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
  ASSERT_EQ(saved_[id].end_warnings.size(), 1u);
  EXPECT_THAT(saved_[id].end_warnings[0], HasSubstr("was lost while recording"));
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
  EXPECT_THAT(record.end_warnings, Contains(HasSubstr("agent b on i-b is gone")));
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
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(HasSubstr("no worker matched; 1 workers exist: i-a")));
  EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("(job llama)")));
}

TEST_F(CoordinatorTest, ACaptureWithoutAgentsEndsWhenItIsStopped) {
  const CaptureId id = Start();
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("no agent is connected")));
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
    EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("another profiler is at work")));
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

// A capture that ends without agent b, which had recorded.
class LateAgentTest : public CoordinatorTest {
 protected:
  CaptureId EndWithoutB() {
    Connect("a");
    Connect("b");
    const CaptureId id = Start();
    for (const char* agent : {"a", "b"}) {
      ReportAgent(agent, id, 1, false);
      Report(agent, id, CaptureWorkerState::kRecording);
    }
    Disconnect("b");
    End(id);
    return id;
  }
  void End(const CaptureId& id) {
    ASSERT_TRUE(coordinator_->StopCapture(id).ok());
    Report("a", id, CaptureWorkerState::kComplete);
    ReportAgent("a", id, 1, true);
    Advance(limits::kAgentReturnMaxNs);
    ASSERT_EQ(saved_[id].state, CaptureState::kIncomplete);
  }
};

TEST_F(LateAgentTest, IsListedAsStoppingAndTurnsTheCaptureComplete) {
  const CaptureId id = EndWithoutB();
  EXPECT_EQ(coordinator_->FindRunning(id), nullptr);
  EXPECT_EQ(saved_[id].end_warnings.size(), 1u);
  EXPECT_NE(saved_[id].agents[1].away_since_realtime_ns, 0u);
  const uint64_t ended_ns = saved_[id].ended_realtime_ns;
  Advance(limits::kLateAgentMaxNs / 2);
  EXPECT_THAT(Connect("a"), IsEmpty());  // it has delivered
  const auto resumed = Connect("b");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0].start.capture_id, id);
  EXPECT_TRUE(resumed[0].stopping);
  EXPECT_THAT(resumed[0].workers, ElementsAre(WorkerOf("b")));
  EXPECT_EQ(coordinator_->Find(id)->agents[1].away_since_realtime_ns, 0u);
  Report("b", id, CaptureWorkerState::kComplete);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_TRUE(saved_[id].agents[1].vanished);
  EXPECT_TRUE(saved_[id].agents[1].finished);
  EXPECT_EQ(saved_[id].ended_realtime_ns, ended_ns);
  EXPECT_THAT(saved_[id].end_warnings, IsEmpty());
  EXPECT_EQ(coordinator_->Find(id), nullptr);
  EXPECT_THAT(Connect("b"), IsEmpty());
}

TEST_F(LateAgentTest, IsWaitedForThroughARestartOfTheAggregator) {
  const CaptureId id = EndWithoutB();
  Restart();
  EXPECT_THAT(coordinator_->Running(), IsEmpty());
  ASSERT_EQ(Connect("b").size(), 1u);
  Report("b", id, CaptureWorkerState::kComplete);
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  Restart();
  EXPECT_EQ(coordinator_->Find(id), nullptr);
}

TEST_F(LateAgentTest, ThatGoesAgainIsWaitedForAgain) {
  const CaptureId id = EndWithoutB();
  const uint64_t away_ns = saved_[id].agents[1].away_since_realtime_ns;
  ASSERT_EQ(Connect("b").size(), 1u);
  Advance(5 * kSecondNs);
  Disconnect("b");
  Advance(5 * kSecondNs);
  EXPECT_GT(saved_[id].agents[1].away_since_realtime_ns, away_ns);
  EXPECT_EQ(Connect("b").size(), 1u);
}

TEST_F(LateAgentTest, ThatLostAWorkerLeavesItIncomplete) {
  const CaptureId id = EndWithoutB();
  ASSERT_EQ(Connect("b").size(), 1u);
  Report("b", id, CaptureWorkerState::kLost, "gone");
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("was lost while recording: gone")));
}

TEST_F(LateAgentTest, IsNotWaitedForBeyondTheLimitOfTime) {
  const CaptureId id = EndWithoutB();
  Advance(limits::kLateAgentMaxNs - 1);
  EXPECT_NE(coordinator_->Find(id), nullptr);
  Advance(1);
  EXPECT_EQ(coordinator_->Find(id), nullptr);
  EXPECT_TRUE(saved_[id].agents[1].given_up);
  EXPECT_THAT(Connect("b"), IsEmpty());
  Restart();
  EXPECT_THAT(Connect("b"), IsEmpty());
}

TEST_F(LateAgentTest, IsNotWaitedForOnceTheCaptureIsDeleted) {
  const CaptureId id = EndWithoutB();
  coordinator_->Forget(id);
  saved_.erase(id);
  EXPECT_THAT(Connect("b"), IsEmpty());
  Advance(10 * kSecondNs);
  EXPECT_FALSE(saved_.contains(id));  // nothing writes it again
}

TEST_F(LateAgentTest, IsWaitedForByItsLatestCaptures) {
  std::vector<CaptureId> ids;
  for (uint32_t i = 0; i < limits::kLateCapturesPerAgentMax + 2; ++i) {
    ids.push_back(EndWithoutB());
    Advance(kSecondNs);
  }
  EXPECT_TRUE(saved_[ids[0]].agents[1].given_up);
  EXPECT_TRUE(saved_[ids[1]].agents[1].given_up);
  EXPECT_FALSE(saved_[ids[2]].agents[1].given_up);
  EXPECT_EQ(Connect("b").size(), limits::kLateCapturesPerAgentMax);
}

TEST_F(CoordinatorTest, RemembersWorkersWithoutAPart) {
  Connect("a");
  Connect("b");
  const auto put = [&](const std::string& agent, uint32_t pid, const std::string& job,
                       WorkerState state) {
    ASSERT_TRUE(coordinator_
                    ->OnWorker(agent, connections_[agent],
                               {.identity = WorkerOf(agent, pid), .state = state, .job = job})
                    .ok());
  };
  put("a", 1, "llama", WorkerState::kBusyOtherProfiler);
  put("a", 2, "other", WorkerState::kIdle);
  put("b", 3, "llama", WorkerState::kIdle);
  Connect("away");
  Disconnect("away");
  const CaptureId id = Start({.job = "llama", .instance_ids = {"i-a", "i-away"}});
  put("a", 4, "llama", WorkerState::kIdle);  // came while it records
  Report("a", id, CaptureWorkerState::kRefused, "busy");
  const auto& record = *coordinator_->FindRunning(id);
  EXPECT_EQ(record.workers.at(0).worker_state, WorkerState::kBusyOtherProfiler);
  std::map<uint32_t, std::pair<BystanderReason, std::string>> told;
  for (const CaptureBystander& worker : record.bystanders) {
    told[worker.worker.pid] = {worker.reason, worker.detail};
  }
  EXPECT_EQ(told.size(), 4u);
  EXPECT_EQ(told[0].first, BystanderReason::kAgentAway);
  EXPECT_EQ(told[2].first, BystanderReason::kNotSelected);
  EXPECT_EQ(told[2].second, "the capture selects job llama, this is job other");
  EXPECT_EQ(told[3].second, "the capture does not select instance i-b");
  EXPECT_EQ(told[4].first, BystanderReason::kNotReported);
  Connect("away");
  EXPECT_EQ(coordinator_->FindRunning(id)->bystanders.size(), 3u);
  Disconnect("a");
  put("b", 5, "llama", WorkerState::kIdle);
  Advance(2 * kSecondNs);
  EXPECT_EQ(saved_[id].bystanders.size(), 4u);  // written with the counts
}

TEST_F(CoordinatorTest, AStopIsToldOnlyWhenItIsWrittenDown) {
  Connect("a");
  const CaptureId id = Start();
  disk_full_ = true;
  EXPECT_EQ(coordinator_->StopCapture(id).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(orders_, ElementsAre("a start"));
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  disk_full_ = false;
  EXPECT_EQ(coordinator_->StopCapture(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a start", "a stop"));
}

TEST_F(CoordinatorTest, ADurationThatIsOverWaitsForTheDisk) {
  Connect("a");
  const CaptureId id = Start({.duration_ns = 5 * kSecondNs});
  disk_full_ = true;
  Advance(5 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_THAT(orders_, ElementsAre("a start"));
  disk_full_ = false;
  Advance(2 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a start", "a stop"));
  EXPECT_THAT(saved_[id].warnings, Contains(HasSubstr("its time was over")));
}

TEST_F(CoordinatorTest, AnAgentRecordsOnlyWhenItsPartIsWrittenDown) {
  const CaptureId id = Start();
  disk_full_ = true;
  for (int i = 0; i < 2; ++i) {
    const auto refused = coordinator_->Connect(Agent("a"), ++last_connection_);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(coordinator_->registry().Find("a")->connection);
  }
  disk_full_ = false;
  EXPECT_EQ(Connect("a").size(), 1u);
  ASSERT_EQ(saved_[id].agents.size(), 1u);
  Restart();  // which asks for it
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_NE(coordinator_->FindRunning(id), nullptr);
}

TEST_F(CoordinatorTest, ASelectedWorkerThatNobodyKnowsInTheEndIsLost) {
  Connect("a");
  for (const uint32_t pid : {1u, 2u, 3u}) {
    ASSERT_TRUE(coordinator_
                    ->OnWorker("a", connections_["a"],
                               {.identity = WorkerOf("a", pid), .state = WorkerState::kIdle})
                    .ok());
  }
  const CaptureId id = Start();
  ASSERT_TRUE(coordinator_->OnWorkerGone("a", connections_["a"], WorkerOf("a", 3)).ok());
  Advance(2 * kSecondNs);  // written with the counts
  Disconnect("a");
  Restart();  // the agent is, too, and finds one of its workers
  Connect("a");
  Report("a", id, CaptureWorkerState::kComplete);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  ASSERT_EQ(saved_[id].workers.size(), 2u);
  EXPECT_EQ(saved_[id].workers[1].worker, WorkerOf("a", 2));
  EXPECT_EQ(saved_[id].workers[1].state, CaptureWorkerState::kLost);
  EXPECT_THAT(saved_[id].end_warnings, Contains(HasSubstr("its successor knows nothing of it")));
  ASSERT_EQ(saved_[id].bystanders.size(), 1u);
  EXPECT_EQ(saved_[id].bystanders[0].detail, "it ended before it was asked to record");
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
