// SPDX-License-Identifier: Apache-2.0
// The life of captures over agents that come, go and fail, on a clock that the test advances.
#include "aggregator/session/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "aggregator/session/coordinator_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CoordinatorTest : public CoordinatorTestBase {};

TEST_F(CoordinatorTest, ACaptureEndsCompleteWhenEveryAgentHasFinished) {
  Connect("a");
  Connect("b");
  const CaptureId id = Record({"a", "b"});
  EXPECT_THAT(TakeOrders(), ElementsAre("a arm", "b arm", "a begin", "b begin"));
  EXPECT_EQ(coordinator_->StopCapture(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a stop", "b stop"));
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(ended_, IsEmpty());
  Report("b", id, CaptureWorkerState::kComplete);
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_THAT(ended_, ElementsAre(id));
  EXPECT_EQ(replies_[id].state, CaptureState::kComplete);
  EXPECT_THAT(saved_[id].warnings, IsEmpty());
  EXPECT_EQ(coordinator_->FindRunning(id), nullptr);
  EXPECT_EQ(coordinator_->StopCapture(id).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CoordinatorTest, AWorkerThatItsAgentFinishesWithoutIsLost) {
  Connect("a");
  const CaptureId id = Record({"a"});
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  ReportAgent("a", id, 1, true);  // started again, and the worker is gone
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  ASSERT_EQ(saved_[id].workers.size(), 1u);
  EXPECT_EQ(saved_[id].workers[0].state, CaptureWorkerState::kLost);
  ASSERT_EQ(saved_[id].end_warnings.size(), 1u);
  EXPECT_THAT(saved_[id].end_warnings[0], HasSubstr("was lost while recording"));
}

TEST_F(CoordinatorTest, AsksOnlyTheInstancesThatAreSelected) {
  Connect("a");
  Connect("b");
  Start({.selection = {.instance_ids = {"i-b"}}});
  EXPECT_THAT(orders_, ElementsAre("b arm"));
  EXPECT_THAT(Connect("a"), IsEmpty());
}

TEST_F(CoordinatorTest, LateAgentsJoinWhileItRecordsAndNotAfter) {
  Connect("a");
  const CaptureId id = Record({"a"});
  const auto resumed = Connect("late");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0].start.capture_id, id);
  EXPECT_FALSE(resumed[0].stopping);
  EXPECT_FALSE(resumed[0].start.arm);
  EXPECT_EQ(saved_[id].agents.size(), 2u);  // durable before the agent records
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_THAT(Connect("later"), IsEmpty());
  const auto again = Connect("late");
  ASSERT_EQ(again.size(), 1u);
  EXPECT_TRUE(again[0].stopping);
}

TEST_F(CoordinatorTest, AnAgentThatDoesNotReturnLeavesTheCaptureIncomplete) {
  Connect("a");
  Connect("b");
  const CaptureId id = Record({"a", "b"});
  Disconnect("b");
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kAgentLost);
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
  EXPECT_THAT(record.end_warnings, Contains(HasSubstr("agent b on i-b disconnected")));
}

TEST_F(CoordinatorTest, AnAgentThatReturnsInTimeFinishes) {
  Connect("a");
  const CaptureId id = Record({"a"});
  Disconnect("a");
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Advance(limits::kAgentReturnMaxNs / 2);
  EXPECT_TRUE(Connect("a").front().stopping);
  Advance(limits::kAgentReturnMaxNs);
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(CoordinatorTest, GivesUpOnSilentConnectedAgent) {
  Connect("a");
  const CaptureId id = Record({"a"});
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Advance(limits::kAgentSilenceMaxNs - 1);
  Report("a", id, CaptureWorkerState::kStopping);  // it is still at it
  Advance(limits::kAgentSilenceMaxNs - 1);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  Advance(1);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
}

TEST_F(CoordinatorTest, WorkersThatRefusedOrDiedMakeItIncomplete) {
  for (const CaptureWorkerState state : {CaptureWorkerState::kRefused, CaptureWorkerState::kLost}) {
    Connect("a");
    Connect("b");
    const CaptureId id = Record({"a", "b"});
    Report("a", id, state, "another profiler is active");
    ASSERT_TRUE(coordinator_->StopCapture(id).ok());
    ReportAgent("a", id, 1, true);
    Report("b", id, CaptureWorkerState::kComplete);
    ReportAgent("b", id, 1, true);
    EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
    EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("another profiler is active")));
  }
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
  const CaptureId id = Record({"a"});
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
  Connect("a");
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
    const CaptureId id = Record({"a", "b"});
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
  EXPECT_THAT(ended_, ElementsAre(id, id));  // reported again, as the record has changed
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

TEST_F(LateAgentTest, DisconnectingAgainIsAwaitedAgain) {
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

TEST_F(LateAgentTest, UpdatesOfItsCaptureAreKeptAndNotReportedAsItsEnd) {
  const CaptureId id = EndWithoutB();
  ASSERT_TRUE(coordinator_->UpdateCapture(id, {.starred = true}).ok());
  EXPECT_TRUE(saved_[id].starred);
  EXPECT_THAT(ended_, ElementsAre(id));  // exports of the end are not made again
  ASSERT_EQ(Connect("b").size(), 1u);
  Report("b", id, CaptureWorkerState::kComplete);
  ReportAgent("b", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_TRUE(saved_[id].starred);
  EXPECT_THAT(ended_, ElementsAre(id, id));
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
  Put("a", WorkerState::kBusyOtherProfiler, 1, "llama");
  Put("a", WorkerState::kIdle, 2, "other");
  Put("b", WorkerState::kIdle, 3, "llama");
  Put("a", WorkerState::kIdle, 6, "llama");
  Connect("away");
  Disconnect("away");
  const CaptureId id = Start({.selection = {.job = "llama"}});
  Report("a", id, CaptureWorkerState::kRefused, "busy", CaptureObstacle::kOtherProfiler);
  Report("a", {.capture_id = id, .worker = WorkerOf("a", 6), .state = CaptureWorkerState::kArmed});
  ReportAgent("a", id, 2, false);
  Report("b", {.capture_id = id, .worker = WorkerOf("b", 3), .state = CaptureWorkerState::kArmed});
  ReportAgent("b", id, 1, false);
  ASSERT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  Put("a", WorkerState::kIdle, 4, "llama");  // came while it records
  const auto& record = *coordinator_->FindRunning(id);
  EXPECT_EQ(StatusOf(id, "a").worker_state, WorkerState::kBusyOtherProfiler);
  std::map<uint32_t, std::pair<NonParticipantReason, std::string>> told;
  for (const NonParticipant& worker : record.non_participants) {
    told[worker.worker.pid] = {worker.reason, worker.detail};
  }
  EXPECT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].first, NonParticipantReason::kAgentAway);
  EXPECT_EQ(told[2].first, NonParticipantReason::kNotSelected);
  EXPECT_EQ(told[2].second, "the capture selects job llama, but this worker has job other");
  EXPECT_EQ(told[4].first, NonParticipantReason::kNotReported);
  Connect("away");
  EXPECT_EQ(coordinator_->FindRunning(id)->non_participants.size(), 2u);
  Disconnect("a");
  Put("b", WorkerState::kIdle, 5, "other");
  Advance(2 * kSecondNs);
  EXPECT_EQ(saved_[id].non_participants.size(), 3u);  // written with the counts
}

TEST_F(CoordinatorTest, SendsStopOnlyOncePersisted) {
  Connect("a");
  const CaptureId id = Record({"a"});
  TakeOrders();
  disk_full_ = true;
  EXPECT_EQ(coordinator_->StopCapture(id).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(orders_, IsEmpty());
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  disk_full_ = false;
  EXPECT_EQ(coordinator_->StopCapture(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a stop"));
}

TEST_F(CoordinatorTest, UpdatesARunningCaptureThroughARestart) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.name = "first"});
  TakeOrders();
  ASSERT_TRUE(coordinator_->UpdateCapture(id, {.name = "second", .add_tags = {"x"}}).ok());
  EXPECT_EQ(coordinator_->UpdateCapture(id, {.add_tags = {"y"}})->tags.size(), 2u);
  EXPECT_THAT(orders_, IsEmpty());
  EXPECT_EQ(replies_[id].spec.name, "second");  // whoever watches it learns of it
  Restart();
  EXPECT_THAT(coordinator_->FindRunning(id)->tags, ElementsAre("x", "y"));
  Connect("a");
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_EQ(saved_[id].spec.name, "second");
  EXPECT_THAT(saved_[id].tags, ElementsAre("x", "y"));
  EXPECT_EQ(coordinator_->UpdateCapture(id, {.starred = true}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(CoordinatorTest, AnUpdateThatCannotBeStoredChangesNothing) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.name = "first"});
  disk_full_ = true;
  EXPECT_EQ(coordinator_->UpdateCapture(id, {.name = "second"}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(coordinator_->FindRunning(id)->spec.name, "first");
  EXPECT_TRUE(coordinator_->UpdateCapture(id, {.name = "first"}).ok());  // which writes nothing
  disk_full_ = false;
  EXPECT_EQ(coordinator_->UpdateCapture(id, {.name = "second"})->spec.name, "second");
}

// The end is counted and exported once it is stored, whatever was stored in between.
TEST_F(CoordinatorTest, AnUpdateBetweenAnEndAndItsReportKeepsTheReport) {
  Connect("a");
  const CaptureId id = Record({"a"});
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  disk_full_ = true;
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  disk_full_ = false;
  ASSERT_TRUE(coordinator_->UpdateCapture(id, {.starred = true}).ok());
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_THAT(ended_, IsEmpty());
  Advance(2 * kSecondNs);
  EXPECT_THAT(ended_, ElementsAre(id));
  EXPECT_TRUE(saved_[id].starred);
  EXPECT_EQ(coordinator_->FindRunning(id), nullptr);
}

TEST_F(CoordinatorTest, ADurationThatIsOverWaitsForTheDisk) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.timing = {.duration_ns = 5 * kSecondNs}});
  TakeOrders();
  disk_full_ = true;
  Advance(6 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_THAT(orders_, IsEmpty());
  disk_full_ = false;
  Advance(2 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a stop"));
  EXPECT_THAT(saved_[id].warnings, Contains(HasSubstr("its duration elapsed")));
}

TEST_F(CoordinatorTest, AnAgentRecordsOnlyWhenItsPartIsWrittenDown) {
  Connect("b");
  const CaptureId id = Record({"b"});
  disk_full_ = true;
  for (int i = 0; i < 2; ++i) {
    const auto refused = coordinator_->Connect(Agent("a"), ++last_connection_);
    EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_FALSE(coordinator_->registry().Find("a")->connection);
  }
  disk_full_ = false;
  EXPECT_EQ(Connect("a").size(), 1u);
  ASSERT_EQ(saved_[id].agents.size(), 2u);
  Restart();  // which asks for it
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  EXPECT_NE(coordinator_->FindRunning(id), nullptr);
}

TEST_F(CoordinatorTest, ASelectedWorkerThatNobodyKnowsInTheEndIsLost) {
  Connect("a");
  const CaptureId id = Record({"a"});
  Put("a", WorkerState::kIdle, 2);  // came later
  Put("a", WorkerState::kIdle, 3);
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
  EXPECT_EQ(StatusOf(id, "a", 2).state, CaptureWorkerState::kLost);
  EXPECT_THAT(saved_[id].end_warnings,
              Contains(HasSubstr("the restarted agent does not know of it")));
  ASSERT_EQ(saved_[id].non_participants.size(), 1u);
  EXPECT_EQ(saved_[id].non_participants[0].detail, "it ended before it was asked to record");
}

TEST_F(CoordinatorTest, AWarningToAllIsInTheRecordOfEachRunningCapture) {
  Connect("a");
  Connect("b");
  const CaptureId first = Record({"a"}, {.selection = {.instance_ids = {"i-a"}}});
  const CaptureId second = Record({"b"}, {.selection = {.instance_ids = {"i-b"}}});
  coordinator_->WarnAll("the disk is full");
  EXPECT_THAT(saved_[first].warnings, Contains("the disk is full"));
  EXPECT_THAT(saved_[second].warnings, Contains("the disk is full"));
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
