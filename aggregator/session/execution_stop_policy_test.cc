// SPDX-License-Identifier: Apache-2.0
// When a capture by executions is over although workers cannot get to its last one, its record in
// that case, and from when its time counts.
#include "aggregator/session/execution_stop_policy.h"

#include <gmock/gmock.h>

#include <string>

#include "aggregator/session/coordinator_test_support.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ExecutionStopPolicyTest : public CoordinatorTestBase {
 protected:
  ExecutionStopPolicyTest() {
    Connect("a");
    Connect("b");
  }
  void Run(const std::string& agent, const CaptureId& id, uint64_t newest, uint64_t first = 0,
           CaptureWorkerState state = CaptureWorkerState::kRecording) {
    Report(agent, {.capture_id = id,
                   .worker = WorkerOf(agent),
                   .state = state,
                   .events_read = first == 0 ? 0u : 7u,
                   .first_execution = first,
                   .highest_first_execution = first,
                   .lowest_newest_execution = newest,
                   .newest_execution = newest});
    Advance(20'000'000);
  }
  CaptureState StateOf(const CaptureId& id) { return coordinator_->Find(id)->state; }
  void Finish(const CaptureId& id) {
    for (const std::string agent : {"a", "b"}) ReportAgent(agent, id, 1, true);
  }
};

TEST_F(ExecutionStopPolicyTest, AJobThatEndsInTheMiddleEndsIt) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 20}});
  Run("a", id, 110, 100);
  Run("b", id, 111, 100);
  Run("a", id, 112, 100, CaptureWorkerState::kComplete);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Run("b", id, 113, 100, CaptureWorkerState::kComplete);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings,
              ElementsAre(AllOf(HasSubstr("its workers ended"), HasSubstr("execution 119"),
                                HasSubstr("the newest was 113"))));
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(ExecutionStopPolicyTest, AJobThatEndsBehindItIsNoneThatEndsInTheMiddle) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  Run("a", id, 104, 100);
  Report("b", {.capture_id = id,
               .worker = WorkerOf("b"),
               .state = CaptureWorkerState::kComplete,
               .events_read = 7,
               .first_execution = 100,
               .highest_first_execution = 100,
               .lowest_newest_execution = 106,
               .newest_execution = 106});
  Run("a", id, 107, 100, CaptureWorkerState::kComplete);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, IsEmpty());
}

TEST_F(ExecutionStopPolicyTest, AnAgentThatIsLostHoldsNobodyUp) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  Run("a", id, 102, 100);
  Run("b", id, 102, 100);
  Disconnect("b");
  Run("a", id, 105, 100);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);  // it may return
  Advance(limits::kAgentReturnMaxNs);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
}

TEST_F(ExecutionStopPolicyTest, AWorkerWithoutNumbersHoldsTheOthersUpForAWhile) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  Run("a", id, 105, 100);
  Advance(ExecutionStopPolicy::kStragglerNs - kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Advance(kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("1 of 2 workers reported no execution")));
  Report("a", {.capture_id = id,
               .worker = WorkerOf("a"),
               .state = CaptureWorkerState::kComplete,
               .events_read = 7,
               .first_execution = 100,
               .highest_first_execution = 100,
               .lowest_newest_execution = 105,
               .newest_execution = 105});
  Report("b", id, CaptureWorkerState::kComplete);
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(AllOf(HasSubstr("recorded nothing"), HasSubstr("reported none"))));
}

// The worker's lowest first execution is that of the capture, and one of its cores began later.
TEST_F(ExecutionStopPolicyTest, ALateCoreIsNotHiddenBehindItsNeighbour) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  for (const std::string agent : {"a", "b"}) {
    Report(agent, {.capture_id = id,
                   .worker = WorkerOf(agent),
                   .state = CaptureWorkerState::kComplete,
                   .events_read = 7,
                   .first_execution = 100,
                   .highest_first_execution = agent == "a" ? 100u : 101u,
                   .lowest_newest_execution = 105,
                   .newest_execution = 106});
  }
  Advance(20'000'000);
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(HasSubstr("its cores began at executions 100 to 101, not all at 100")));
}

// All others are past the last execution, so that nothing else reports the core that stopped early.
TEST_F(ExecutionStopPolicyTest, ACoreThatEndsEarlyIsReported) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 20}});
  Report("a", {.capture_id = id,
               .worker = WorkerOf("a"),
               .state = CaptureWorkerState::kComplete,
               .events_read = 7,
               .first_execution = 100,
               .highest_first_execution = 100,
               .lowest_newest_execution = 107,
               .newest_execution = 119});
  Run("b", id, 120, 100);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, IsEmpty());
  Report("b", id, CaptureWorkerState::kComplete);
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(HasSubstr("not all of its cores reached execution 119: the newest was "
                                    "107 on one of them")));
}

// The fastest core's number is held at the last execution until all are past it.
TEST_F(ExecutionStopPolicyTest, AnExecutionOfTheSlowestCoreIsProgress) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  const auto run = [&](uint64_t lowest) {
    for (const std::string agent : {"a", "b"}) {
      Report(agent, {.capture_id = id,
                     .worker = WorkerOf(agent),
                     .state = CaptureWorkerState::kRecording,
                     .first_execution = 100,
                     .highest_first_execution = 100,
                     .lowest_newest_execution = lowest,
                     .newest_execution = 104});
    }
    Advance(20'000'000);
    Advance(ExecutionStopPolicy::kNoProgressNs - kSecondNs);
  };
  run(100);
  run(101);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Advance(2 * kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings,
              ElementsAre(HasSubstr("the newest was 104, and 101 on the core that is furthest "
                                    "behind")));
}

TEST_F(ExecutionStopPolicyTest, OneWorkerAloneDoesNotEndItWhileAnotherBegins) {
  const CaptureId id = Start({.conditions = {.at_execution = 100, .executions = 5}});
  Arm("a", id);
  Arm("b", id);
  Run("a", id, 105, 100);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Run("b", id, 105, 100);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
}

TEST_F(ExecutionStopPolicyTest, DoesNotWaitForeverForWorkersWithoutExecutions) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.executions = 5}});
  Advance(ExecutionStopPolicy::kNoProgressNs - kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Advance(2 * kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("none reported an execution")));
  for (const std::string agent : {"a", "b"}) Report(agent, id, CaptureWorkerState::kComplete);
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(HasSubstr("no execution to start at was found")));
}

TEST_F(ExecutionStopPolicyTest, ItsTimeCountsFromTheExecution) {
  const CaptureId id = Record({"a", "b"}, {.timing = {.duration_ns = 5 * kSecondNs},
                                           .conditions = {.at_execution = 4'711}});
  for (int i = 0; i < 20; ++i) {
    Run("a", id, 4'690 + i);
    Run("b", id, 4'690 + i);
    Advance(kSecondNs);
    ASSERT_EQ(StateOf(id), CaptureState::kRecording);
  }
  Run("a", id, 4'711, 4'711);
  Advance(4 * kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kRecording);
  Advance(kSecondNs);
  EXPECT_EQ(StateOf(id), CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, IsEmpty());
}

TEST_F(ExecutionStopPolicyTest, ReportsUnreachedExecution) {
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 4'711}});
  Run("a", id, 4'711, 4'711);
  Run("b", id, 4'700);
  ASSERT_TRUE(coordinator_->StopCapture(id).ok());
  Run("a", id, 4'712, 4'711, CaptureWorkerState::kComplete);
  Run("b", id, 4'701, 0, CaptureWorkerState::kComplete);
  Finish(id);
  EXPECT_EQ(saved_[id].state, CaptureState::kIncomplete);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre(AllOf(HasSubstr("i-b"), HasSubstr("execution 4711"),
                                HasSubstr("its newest was 4701"))));
}

}  // namespace
}  // namespace neurontrace
