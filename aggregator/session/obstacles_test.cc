// SPDX-License-Identifier: Apache-2.0
// Every way in which a selected worker can have no part in a capture, each with what is said of it,
// and two operators at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/session/coordinator_test_support.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Agent "a" has a worker that takes part; "b" has the one that does not.
class ObstaclesTest : public CoordinatorTestBase {
 protected:
  ObstaclesTest() {
    Connect("a");
    Connect("b");
  }

  // Starts a capture while a worker of "b" is in this state and its agent reports nothing about it.
  CaptureId StartWith(WorkerState state) {
    Put("b", state);
    const CaptureId id = Start();
    Arm("a", id);
    ReportAgent("b", id, 0, false);
    return id;
  }
  void End(const CaptureId& id) {
    ASSERT_TRUE(coordinator_->StopCapture(id).ok());
    for (const char* agent : {"a", "b"}) {
      if (std::string(agent) == "a") Report(agent, id, CaptureWorkerState::kComplete);
      ReportAgent(agent, id, 1, true);
    }
  }
};

TEST_F(ObstaclesTest, UsesInventoryReasonIfAgentReportsNone) {
  const std::map<WorkerState, CaptureObstacle> cases = {
      {WorkerState::kNoTap, CaptureObstacle::kNoTap},
      {WorkerState::kNotInitialised, CaptureObstacle::kNotInitialised},
      {WorkerState::kRuntimeTooOld, CaptureObstacle::kRuntimeTooOld},
      {WorkerState::kBusyOtherProfiler, CaptureObstacle::kOtherProfiler},
      {WorkerState::kFailed, CaptureObstacle::kRuntimeRefused},
      {WorkerState::kClosed, CaptureObstacle::kEnded}};
  for (const auto& [state, obstacle] : cases) {
    const CaptureId id = StartWith(state);
    EXPECT_EQ(saved_[id].state, CaptureState::kRecording) << ToString(obstacle);
    EXPECT_EQ(StatusOf(id, "b").state, CaptureWorkerState::kRefused);
    EXPECT_EQ(StatusOf(id, "b").obstacle, obstacle);
    EXPECT_NE(StatusOf(id, "b").detail, "");
    EXPECT_EQ(refused_[obstacle], 1u);
    End(id);
    EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
    EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr(std::string(ToString(obstacle)))));
  }
}

TEST_F(ObstaclesTest, KeepsReasonReportedByAgent) {
  for (const CaptureObstacle obstacle :
       {CaptureObstacle::kOtherProfiler, CaptureObstacle::kOtherCapture,
        CaptureObstacle::kNoEventType, CaptureObstacle::kRuntimeRefused,
        CaptureObstacle::kRuntimeTooOld, CaptureObstacle::kNotInitialised}) {
    const CaptureId id = Start();
    Arm("a", id);
    Report("b", id, CaptureWorkerState::kRefused, "in its words", obstacle);
    ReportAgent("b", id, 1, false);
    EXPECT_EQ(StatusOf(id, "b").obstacle, obstacle);
    End(id);
    EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("in its words")));
    EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr(std::string(ToString(obstacle)))));
  }
}

TEST_F(ObstaclesTest, WithNobodyLeftItDoesNotBegin) {
  Put("b", WorkerState::kNoTap);
  Put("b", WorkerState::kNotInitialised, 2);
  const CaptureId id = Start();
  ReportAgent("a", id, 0, false);
  ReportAgent("b", id, 0, false);
  EXPECT_EQ(saved_[id].state, CaptureState::kNotBegun);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre("none of the 2 selected workers can take part (no tap: 1; not "
                          "initialised: 1)"));
}

TEST_F(ObstaclesTest, AProcessWithoutATapThatComesLaterIsNamed) {
  const CaptureId id = Start();
  Arm("a", id);
  ReportAgent("b", id, 0, false);
  Put("b", WorkerState::kNoTap, 9);
  EXPECT_EQ(StatusOf(id, "b", 9).obstacle, CaptureObstacle::kNoTap);
}

TEST_F(ObstaclesTest, WorkersOfAnAgentThatIsAway) {
  Put("b", WorkerState::kIdle, 1, "llama");
  Put("b", WorkerState::kIdle, 2, "other");
  Disconnect("b");
  Advance(12 * kSecondNs);
  const CaptureId id =
      Start({.selection = {.job = "llama"}, .conditions = {.require_percent = 100}});
  Arm("a", id);
  EXPECT_EQ(saved_[id].state, CaptureState::kNotBegun);
  EXPECT_EQ(saved_[id].workers.size(), 2u);
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kAgentLost);
  EXPECT_EQ(StatusOf(id, "b").detail, "its agent b disconnected 12 s ago");
  // Long gone, its workers are nobody's business any more; its instance may be asked for.
  Advance(limits::kAgentLostForNs);
  const CaptureId later =
      Start({.selection = {.job = "llama"}, .conditions = {.require_percent = 100}});
  Arm("a", later);
  EXPECT_EQ(saved_[later].state, CaptureState::kRecording);
  const CaptureId named = Start({.selection = {.instance_ids = {"i-b"}}});
  EXPECT_EQ(saved_[named].state, CaptureState::kNotBegun);
  ASSERT_EQ(saved_[named].workers.size(), 1u);
  EXPECT_EQ(saved_[named].workers[0].obstacle, CaptureObstacle::kAgentLost);
}

TEST_F(ObstaclesTest, ReturningAgentReportsItsWorkers) {
  Put("b", WorkerState::kIdle);
  Disconnect("b");
  const CaptureId id = Start();
  Arm("a", id);
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kAgentLost);
  Connect("b");
  EXPECT_EQ(coordinator_->FindRunning(id)->workers.size(), 1u);
  Report("b", {.capture_id = id,
               .worker = WorkerOf("b"),
               .state = CaptureWorkerState::kRecording,
               .joined_late = true});
  Report("b", id, CaptureWorkerState::kComplete);
  End(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(ObstaclesTest, AnAgentThatVanishesWhileItArms) {
  Put("b", WorkerState::kIdle);
  const CaptureId id = Start();
  Disconnect("b");
  Arm("a", id);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kAgentLost);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  Advance(limits::kAgentReturnMaxNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
}

TEST_F(ObstaclesTest, OneThatEndsBeforeItAnswers) {
  Put("b", WorkerState::kIdle);
  const CaptureId id = Start();
  Arm("a", id);
  ReportAgent("b", id, 0, false);
  Advance(limits::kArmPatienceNs);
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kNoAnswer);
  ASSERT_TRUE(coordinator_->OnWorkerGone("b", connections_["b"], WorkerOf("b")).ok());
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kEnded);
}

TEST_F(ObstaclesTest, OneThatNeverAnswersHadNoPart) {
  Put("b", WorkerState::kIdle);
  const CaptureId id = Start();
  Arm("a", id);
  ReportAgent("b", id, 0, false);
  Advance(limits::kArmPatienceNs);
  End(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_EQ(StatusOf(id, "b").state, CaptureWorkerState::kRefused);
  EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("no answer")));
}

TEST_F(ObstaclesTest, OneThatIsArmedAndNeverBegins) {
  const CaptureId id = Start();
  Arm("a", id);
  Arm("b", id);
  End(id);
  EXPECT_EQ(StatusOf(id, "b").state, CaptureWorkerState::kRefused);
  EXPECT_THAT(saved_[id].end_warnings, ElementsAre(HasSubstr("never reported its start")));
}

TEST_F(ObstaclesTest, ASuspendedFlightRecorderIsNoLoss) {
  const CaptureId id = Start({.mode = CaptureMode::kFlightRecorder});
  Arm("a", id);
  Arm("b", id);
  Report("b", id, CaptureWorkerState::kSuspended, "suspended for another capture");
  End(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

// Nobody has confirmed what it had recorded before it was suspended.
TEST_F(ObstaclesTest, ASuspendedContinuousCaptureHasToDeliverAllTheSame) {
  const CaptureId id =
      Start({.mode = CaptureMode::kContinuous, .retention = {.duration_ns = 60'000'000'000}});
  Arm("a", id);
  Arm("b", id);
  Report("b", id, CaptureWorkerState::kSuspended, "suspended for another capture");
  End(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_EQ(StatusOf(id, "b").state, CaptureWorkerState::kLost);
}

TEST_F(ObstaclesTest, TwoOperatorsAtOnceAreBothAnswered) {
  const CaptureId first = Start();
  const CaptureId second = Start();
  EXPECT_THAT(orders_, ElementsAre("a arm", "b arm", "a arm", "b arm"));
  for (const char* agent : {"a", "b"}) {
    Arm(agent, first);
    Report(agent, second, CaptureWorkerState::kRefused, "capture " + first.ToString() + " runs",
           CaptureObstacle::kOtherCapture);
    ReportAgent(agent, second, 1, false);
  }
  EXPECT_EQ(saved_[first].state, CaptureState::kRecording);
  EXPECT_EQ(saved_[second].state, CaptureState::kNotBegun);
  EXPECT_THAT(saved_[second].end_warnings,
              ElementsAre("none of the 2 selected workers can take part (other capture: 2)"));
  EXPECT_THAT(StatusOf(second, "a").detail, HasSubstr(first.ToString()));
  // Disjoint, both record.
  End(first);
  const CaptureId on_a = Start({.selection = {.instance_ids = {"i-a"}}});
  const CaptureId on_b = Start({.selection = {.instance_ids = {"i-b"}}});
  Arm("a", on_a);
  Arm("b", on_b);
  EXPECT_EQ(saved_[on_a].state, CaptureState::kRecording);
  EXPECT_EQ(saved_[on_b].state, CaptureState::kRecording);
}

}  // namespace
}  // namespace neurontrace
