// SPDX-License-Identifier: Apache-2.0
// From the command to the moment at which a fleet begins, and to the one at which it stops: who
// gets which order and when, over agents that are late, old or away, and an aggregator that is
// restarted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/session/capture_arming.h"
#include "aggregator/session/coordinator_test_support.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ArmingTest : public CoordinatorTestBase {
 protected:
  const CaptureBegin& LastBegin(const std::string& agent) {
    return std::get<BeginOrder>(sent_[agent].back()).begin;
  }
};

TEST_F(ArmingTest, BeginsAllAtOneMomentOnceAllHaveAnswered) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start({.timing = {.duration_ns = 10 * kSecondNs}});
  EXPECT_THAT(TakeOrders(), ElementsAre("a arm", "b arm"));
  EXPECT_EQ(saved_[id].state, CaptureState::kArming);
  clock_.AdvanceNs(5'000'000);
  Arm("a", id);
  EXPECT_THAT(orders_, IsEmpty());
  clock_.AdvanceNs(25'000'000);
  Arm("b", id);
  EXPECT_THAT(TakeOrders(), ElementsAre("a begin", "b begin"));
  // Twice as far ahead as the slowest answer took.
  const uint64_t begin_ns = clock_.RealtimeNs() + 60'000'000;
  EXPECT_EQ(LastBegin("a").reference_ns, begin_ns);
  EXPECT_EQ(LastBegin("a").host_raw_ns, begin_ns - kRawBehindNs);
  EXPECT_EQ(LastBegin("a").bound_ns, 1'000u);
  EXPECT_EQ(LastBegin("b").host_raw_ns, begin_ns - kRawBehindNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_EQ(saved_[id].begin->reference_ns, begin_ns);
  EXPECT_EQ(saved_[id].begin->host_raw_ns, 0u);  // each host has another
  EXPECT_EQ(saved_[id].begin->bound_ns, 1'000u);
  EXPECT_EQ(saved_[id].armed_realtime_ns, clock_.RealtimeNs());
  ASSERT_THAT(judged_, SizeIs(1));
  EXPECT_TRUE(judged_[0].begun);
  EXPECT_EQ(judged_[0].arm_ns, 30'000'000u);
  EXPECT_EQ(judged_[0].lead_ns, 60'000'000u);
}

TEST_F(ArmingTest, TheDurationCountsFromTheBeginningAndEndsAtOneMoment) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.timing = {.duration_ns = 10 * kSecondNs}});
  const uint64_t end_ns = saved_[id].begin->reference_ns + 10 * kSecondNs;
  TakeOrders();
  const uint64_t left_ns = end_ns - clock_.RealtimeNs();
  Advance(left_ns - 61'000'000);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  Advance(1'000'000);  // so that agents get the order in time
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kStopping);
  EXPECT_THAT(orders_, ElementsAre("a stop"));
  EXPECT_EQ(std::get<StopOrder>(sent_["a"].back()).host_raw_ns, end_ns - kRawBehindNs);
  EXPECT_EQ(saved_[id].stopped_realtime_ns, end_ns);
}

TEST_F(ArmingTest, OrdersAgentsWithoutTimersAtStartTime) {
  Connect("a");
  clocks_known_ = false;
  const CaptureId id = Record({"a"}, {.timing = {.duration_ns = kSecondNs}});
  EXPECT_THAT(TakeOrders(), ElementsAre("a arm"));
  Advance(limits::kBeginLeadMinNs - 1);
  EXPECT_THAT(orders_, IsEmpty());
  Advance(1);
  EXPECT_THAT(TakeOrders(), ElementsAre("a begin"));
  EXPECT_EQ(LastBegin("a").host_raw_ns, 0u);
  Advance(kSecondNs - 60'000'000);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(orders_, IsEmpty());
  Advance(60'000'000);
  EXPECT_THAT(orders_, ElementsAre("a stop"));
}

TEST_F(ArmingTest, DoesNotWaitForEver) {
  Connect("a");
  Connect("mute");
  Put("mute", WorkerState::kIdle);
  const CaptureId id = Start();
  Arm("a", id);
  TakeOrders();
  Advance(limits::kArmPatienceNs - 1);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);
  Advance(1);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_EQ(StatusOf(id, "mute").obstacle, CaptureObstacle::kNoAnswer);
  EXPECT_EQ(refused_[CaptureObstacle::kNoAnswer], 1u);
  // It gets the order all the same, and may still join.
  EXPECT_THAT(TakeOrders(), ElementsAre("a begin", "mute begin"));
  Report("mute", {.capture_id = id,
                  .worker = WorkerOf("mute"),
                  .state = CaptureWorkerState::kRecording,
                  .joined_late = true});
  EXPECT_EQ(StatusOf(id, "mute").obstacle, CaptureObstacle::kNone);
  EXPECT_TRUE(StatusOf(id, "mute").joined_late);
}

TEST_F(ArmingTest, BeginOutlivesReportingAgent) {
  Connect("a");
  Connect("b");
  const CaptureId id = Record({"a", "b"});
  CaptureWorkerStatus status = {.capture_id = id,
                                .worker = WorkerOf("a"),
                                .state = CaptureWorkerState::kRecording,
                                .events_read = 10,
                                .begun_realtime_ns = 5'000,
                                .begin_offset_ns = 40,
                                .begun_as_planned = true,
                                .first_execution = 1'000,
                                .highest_first_execution = 1'001,
                                .lowest_newest_execution = 1'199,
                                .newest_execution = 1'200,
                                .cores_without_execution = 1};
  Report("a", status);
  CaptureWorkerStatus late = status;
  late.worker = WorkerOf("b");
  late.begin_offset_ns = 0;
  late.begun_as_planned = false;
  late.joined_late = true;
  Report("b", late);
  // The next agents find them recording.
  const auto found = [&](const std::string& agent, uint64_t first, uint64_t newest) {
    Report(agent, {.capture_id = id,
                   .worker = WorkerOf(agent),
                   .state = CaptureWorkerState::kRecording,
                   .events_read = 30,
                   .first_execution = first,
                   .newest_execution = newest});
    return StatusOf(id, agent);
  };
  status.events_read = 30;
  EXPECT_EQ(found("a", 0, 0), status);
  status.newest_execution = 9'999;
  status.cores_without_execution = 0;
  EXPECT_EQ(found("a", 9'000, 9'999), status);
  EXPECT_TRUE(found("b", 0, 0).joined_late);
  // A trace that restarts is not the beginning.
  Report("a", {.capture_id = id,
               .worker = WorkerOf("a"),
               .state = CaptureWorkerState::kRecording,
               .begun_realtime_ns = 600'000,
               .begin_offset_ns = 595'040,
               .begun_as_planned = true});
  EXPECT_EQ(StatusOf(id, "a").begun_realtime_ns, 5'000u);
  EXPECT_EQ(StatusOf(id, "a").begin_offset_ns, 40);
}

TEST_F(ArmingTest, WaitsForTapsOfReportingAgents) {
  Connect("a");
  Put("a", WorkerState::kIdle, 2);
  const CaptureId id = Start();
  Report("a", id, CaptureWorkerState::kStarting);
  ReportAgent("a", id, 2, false);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);
  Report("a", id, CaptureWorkerState::kArmed);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);
  Report("a", {.capture_id = id, .worker = WorkerOf("a", 2), .state = CaptureWorkerState::kArmed});
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
}

TEST_F(ArmingTest, BeginsOnlyWithAsManyAsItRequires) {
  for (const auto& [percent, begins] :
       std::map<uint32_t, bool>{{0, true}, {75, true}, {76, false}}) {
    TakeOrders();
    for (const char* agent : {"a", "b", "c", "d"}) Connect(agent);
    const CaptureId id = Start({.conditions = {.require_percent = percent}});
    for (const char* agent : {"a", "b", "c"}) Arm(agent, id);
    Report("d", id, CaptureWorkerState::kRefused, "", CaptureObstacle::kOtherProfiler);
    ReportAgent("d", id, 1, false);
    EXPECT_EQ(saved_[id].state, begins ? CaptureState::kRecording : CaptureState::kNotBegun);
    if (begins) {
      ASSERT_TRUE(coordinator_->StopCapture(id).ok());
      continue;
    }
    EXPECT_THAT(saved_[id].end_warnings,
                ElementsAre("3 of 4 selected workers are armed, but 76 % are required (busy: other "
                            "profiler: 1)"));
    EXPECT_EQ(coordinator_->Find(id), nullptr);
    EXPECT_THAT(orders_, Contains("a stop"));
    EXPECT_EQ(StatusOf(id, "a").state, CaptureWorkerState::kArmed);
    EXPECT_NE(saved_[id].ended_realtime_ns, 0u);
    EXPECT_FALSE(judged_.back().begun);
  }
}

TEST_F(ArmingTest, EndsImmediatelyWithoutWorkersAndListsThem) {
  const CaptureRecord none = coordinator_->StartCapture({}).value();
  EXPECT_EQ(none.state, CaptureState::kNotBegun);
  EXPECT_THAT(none.end_warnings, ElementsAre("no worker matched; no agent is connected"));
  EXPECT_THAT(coordinator_->Running(), IsEmpty());

  Connect("a");
  Put("a", {.identity = WorkerOf("a", 4711), .state = WorkerState::kIdle, .job = "llama"});
  const CaptureId id = Start({.selection = {.job = "lama"}});
  ReportAgent("a", id, 0, false);
  EXPECT_EQ(saved_[id].state, CaptureState::kNotBegun);
  EXPECT_THAT(saved_[id].end_warnings,
              ElementsAre("no worker matched; there is 1 worker of job llama on 1 instance (i-a "
                          "pid 4711); 1 instance: i-a; did you mean llama?"));
}

TEST_F(ArmingTest, AStandingCaptureWaitsForItsWorkers) {
  const CaptureId id = Start({.mode = CaptureMode::kFlightRecorder, .selection = {.job = "llama"}});
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  const auto resumed = Connect("a");
  ASSERT_THAT(resumed, SizeIs(1));
  EXPECT_FALSE(resumed[0].start.arm);
  EXPECT_EQ(resumed[0].start.begin->reference_ns, saved_[id].begin->reference_ns);
}

TEST_F(ArmingTest, CanBeStoppedBeforeItBegins) {
  Connect("a");
  const CaptureId id = Start();
  const CaptureRecord stopped = coordinator_->StopCapture(id).value();
  EXPECT_EQ(stopped.state, CaptureState::kNotBegun);
  EXPECT_THAT(stopped.end_warnings, ElementsAre("it was stopped before it began"));
  EXPECT_THAT(orders_, ElementsAre("a arm", "a stop"));
}

TEST_F(ArmingTest, StartsOnlyPersistedCaptures) {
  Connect("a");
  const CaptureId id = Start();
  TakeOrders();
  disk_full_ = true;
  Arm("a", id);
  EXPECT_THAT(orders_, IsEmpty());
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);
  disk_full_ = false;
  Advance(2 * kSecondNs);
  EXPECT_THAT(orders_, ElementsAre("a begin"));
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
}

TEST_F(ArmingTest, ThroughARestartWhileItArms) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  Arm("a", id);
  Restart();
  TakeOrders();
  const auto resumed = Connect("a");
  ASSERT_THAT(resumed, SizeIs(1));
  EXPECT_TRUE(resumed[0].start.arm);
  EXPECT_THAT(resumed[0].workers, IsEmpty());
  Arm("a", id);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);  // b has yet to come
  EXPECT_TRUE(Connect("b").front().start.arm);
  Arm("b", id);
  EXPECT_THAT(orders_, ElementsAre("a begin", "b begin"));
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
}

TEST_F(ArmingTest, ThroughARestartWithoutAnAgentThatDoesNotReturn) {
  Connect("a");
  Connect("b");
  Put("b", WorkerState::kIdle);
  const CaptureId id = Start();
  Restart();
  Connect("a");
  Arm("a", id);
  Advance(limits::kAgentReturnMaxNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  EXPECT_EQ(StatusOf(id, "b").obstacle, CaptureObstacle::kAgentLost);
}

TEST_F(ArmingTest, ThroughARestartBetweenThePlanAndItsOrders) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  clock_.AdvanceNs(50'000'000);
  Arm("a", id);
  Arm("b", id);  // written, and say that nothing went out
  const uint64_t begin_ns = saved_[id].begin->reference_ns;
  Restart();
  const auto ahead = Connect("a");
  ASSERT_THAT(ahead, SizeIs(1));
  EXPECT_FALSE(ahead[0].start.arm);
  EXPECT_EQ(ahead[0].start.begin->reference_ns, begin_ns);
  EXPECT_EQ(ahead[0].start.begin->host_raw_ns, begin_ns - kRawBehindNs);
  clocks_known_ = false;
  TakeOrders();
  EXPECT_TRUE(Connect("b").front().start.arm);  // until the moment
  Advance(100'000'000);
  EXPECT_THAT(orders_, ElementsAre("b begin"));
  EXPECT_FALSE(Connect("b").front().start.arm);
}

TEST_F(ArmingTest, ThroughARestartWhileItRecordsWithTheTimeThatIsLeft) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.timing = {.duration_ns = 60 * kSecondNs}});
  const uint64_t end_ns = saved_[id].begin->reference_ns + 60 * kSecondNs;
  clock_.AdvanceNs(20 * kSecondNs);
  Restart();
  clock_.AdvanceNs(20 * kSecondNs);
  ASSERT_THAT(Connect("a"), SizeIs(1));
  Advance(19 * kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  Advance(kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kStopping);
  EXPECT_EQ(std::get<StopOrder>(sent_["a"].back()).host_raw_ns, end_ns - kRawBehindNs);
  Restart();
  EXPECT_TRUE(Connect("a").front().stopping);
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
}

TEST_F(ArmingTest, AnAgentThatComesBackWhileItArmsIsArmedAgain) {
  Connect("a");
  Connect("b");
  const CaptureId id = Start();
  Arm("a", id);
  Disconnect("a");
  EXPECT_TRUE(Connect("a").front().start.arm);
  Arm("b", id);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kArming);
  Arm("a", id);
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
}

TEST_F(ArmingTest, AppliesAndReportsDefaultFilter) {
  Connect("a");
  EXPECT_EQ(saved_[Start()].spec.filter.event_types, DefaultEventFilter());
  EXPECT_THAT(saved_[Start({.filter = {.all_events = true}})].spec.filter.event_types, IsEmpty());
  const CaptureId chosen = Start({.filter = {.event_types = {"hardware"}}});
  EXPECT_THAT(saved_[chosen].spec.filter.event_types, ElementsAre("hardware"));
}

// --- Modes ---------------------------------------------------------------------------------------

TEST_F(ArmingTest, ASnapshotIsCutOutOfTheFlightRecorderAndStopsByItself) {
  Connect("a");
  const CaptureId recorder =
      Record({"a"}, {.mode = CaptureMode::kFlightRecorder, .selection = {.job = "llama"}});
  TakeOrders();
  const CaptureId id =
      Start({.mode = CaptureMode::kSnapshot, .timing = {.last_ns = 20 * kSecondNs}});
  const CaptureSpec& spec = saved_[id].spec;
  EXPECT_EQ(spec.timing.flight_recorder, recorder);
  EXPECT_EQ(spec.selection.job, "llama");
  Arm("a", id);
  EXPECT_THAT(orders_, ElementsAre("a arm", "a begin"));
  EXPECT_EQ(saved_[id].state, CaptureState::kRecording);
  Advance(limits::kBeginLeadMinNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(orders_, SizeIs(2));  // its agents know
  Report("a", id, CaptureWorkerState::kComplete);
  ReportAgent("a", id, 1, true);
  EXPECT_EQ(saved_[id].state, CaptureState::kComplete);
  EXPECT_EQ(coordinator_->FindRunning(recorder)->state, CaptureState::kRecording);
}

TEST_F(ArmingTest, SnapshotReportsEventsTakenByEarlierOne) {
  Connect("a");
  Record({"a"}, {.mode = CaptureMode::kFlightRecorder});
  const auto warnings = [this](uint64_t last_ns) {
    const CaptureId id = Start({.mode = CaptureMode::kSnapshot, .timing = {.last_ns = last_ns}});
    Arm("a", id);
    AdvanceSmoothly(limits::kBeginLeadMinNs);
    Report("a", id, CaptureWorkerState::kComplete);
    ReportAgent("a", id, 1, true);
    AdvanceSmoothly(2 * kSecondNs);
    return saved_[id].warnings;
  };
  EXPECT_THAT(warnings(20 * kSecondNs), IsEmpty());
  EXPECT_THAT(warnings(1 * kSecondNs), IsEmpty()) << "it reaches less far back";
  EXPECT_THAT(warnings(4 * kSecondNs), ElementsAre(HasSubstr("a snapshot 2.")));
  Restart();
  Connect("a");
  EXPECT_THAT(warnings(4 * kSecondNs), ElementsAre(HasSubstr("emptied the rings")));
}

TEST_F(ArmingTest, APreviewStopsByItself) {
  Connect("a");
  const CaptureId id =
      Record({"a"}, {.mode = CaptureMode::kPreview, .timing = {.duration_ns = 3'600 * kSecondNs}});
  Advance(limits::kBeginLeadMinNs + 2 * kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
}

TEST_F(ArmingTest, BeginsAndEndsAtGivenExecutions) {
  Connect("a");
  Connect("b");
  const CaptureId id = Record({"a", "b"}, {.conditions = {.at_execution = 100, .executions = 5}});
  EXPECT_EQ(LastBegin("a").first_execution, 100u);
  EXPECT_EQ(LastBegin("a").last_execution, 104u);
  const auto run = [&](const std::string& agent, uint64_t newest) {
    Report(agent, {.capture_id = id,
                   .worker = WorkerOf(agent),
                   .state = CaptureWorkerState::kRecording,
                   .newest_execution = newest});
    Advance(20'000'000);
  };
  run("a", 105);
  run("b", 104);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  run("b", 105);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kStopping);
}

TEST_F(ArmingTest, BeginsAtAnExecutionThatNobodyHasReached) {
  Connect("a");
  Connect("b");
  const CaptureId id = Record({"a", "b"}, {.conditions = {.executions = 10}});
  TakeOrders();
  const auto run = [&](const std::string& agent, uint64_t newest) {
    Report(agent, {.capture_id = id,
                   .worker = WorkerOf(agent),
                   .state = CaptureWorkerState::kRecording,
                   .newest_execution = newest});
  };
  for (uint64_t at = 0; at <= 3; ++at) {
    run("a", 1'000 + 10 * at);  // 100 a second
    run("b", 1'001 + 10 * at);
    EXPECT_EQ(saved_[id].begin->first_execution, 0u);
    Advance(at == 0 ? 20'000'000 : 80'000'000);
    if (saved_[id].begin->first_execution != 0) break;
  }
  const uint64_t first = saved_[id].begin->first_execution;
  EXPECT_GE(first, 1'031u + 20);
  EXPECT_LE(first, 1'031u + 80);
  EXPECT_EQ(saved_[id].begin->last_execution, first + 9);
  EXPECT_THAT(orders_, ElementsAre("a begin", "b begin"));
  EXPECT_EQ(LastBegin("b").first_execution, first);
}

// --- After a restart of the aggregator ---

TEST_F(ArmingTest, RequirementWaitsForReturningWorkers) {
  for (const std::string agent : {"a", "b", "c"}) coordinator_->RestoreAgent(Agent(agent), 1, 2);
  Connect("a");
  const CaptureId all = Start({.conditions = {.require_percent = 100}});
  const CaptureId any = Start({.selection = {.job = "other"}, .filter = {.include_neuron = false}});
  Arm("a", all);
  ReportAgent("a", any, 0, false);
  EXPECT_EQ(coordinator_->FindRunning(any)->state, CaptureState::kRecording);
  Advance(5 * kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(all)->state, CaptureState::kArming);
  Connect("b");
  Report("b", all, CaptureWorkerState::kRefused, "", CaptureObstacle::kOtherProfiler);
  ReportAgent("b", all, 1, false);
  Advance(kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(all)->state, CaptureState::kArming);
  // The third does not return.
  Advance(5 * kSecondNs);
  EXPECT_EQ(saved_[all].state, CaptureState::kNotBegun);
  EXPECT_THAT(saved_[all].end_warnings, ElementsAre(HasSubstr("1 of 2 selected workers")));
  // By then nobody is waited for any more.
  const CaptureId later =
      Start({.selection = {.job = "later"}, .conditions = {.require_percent = 100}});
  for (const std::string agent : {"a", "b"}) ReportAgent(agent, later, 0, false);
  EXPECT_EQ(coordinator_->FindRunning(later), nullptr);
}

// --- Limits --------------------------------------------------------------------------------------

TEST_F(ArmingTest, StopsAtItsLimitOfBytes) {
  Connect("a");
  const CaptureId id = Record({"a"}, {.budget = {.stored_bytes_max = 1'000'000}});
  stored_[id] = 999'999;
  Advance(kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  stored_[id] = 1'000'000;
  Advance(kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings,
              ElementsAre("it was stopped: it has reached its limit of 1.0 MB"));
}

TEST_F(ArmingTest, StopsAtAQuotaAlsoAfterARestart) {
  Connect("a");
  quotas_.capture_bytes = 5'000'000;
  const CaptureId id = Record({"a"});
  Restart();
  Connect("a");
  stored_[id] = 5'000'000;
  Advance(kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(over_quota_[id], ElementsAre(HasSubstr("--quota-capture-bytes")));
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("--quota-capture-bytes")));
}

TEST_F(ArmingTest, OthersOfItsJobLeaveItLess) {
  Connect("a");
  quotas_.job_bytes = 10'000'000;
  use_.job = "llama";
  const CaptureId id = Record({"a"}, {.selection = {.job = "llama"}});
  stored_[id] = use_.job_bytes = 3'000'000;
  Advance(CaptureAllowance::kAgeMaxNs + kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(id)->state, CaptureState::kRecording);
  use_.job_bytes = 11'000'000;
  Advance(CaptureAllowance::kAgeMaxNs + kSecondNs);
  EXPECT_EQ(saved_[id].state, CaptureState::kStopping);
  EXPECT_THAT(saved_[id].warnings, ElementsAre(HasSubstr("--quota-job-bytes")));
}

TEST_F(ArmingTest, QuotaSurvivesRestart) {
  Connect("a");
  quotas_.store_bytes = 6'000'000;
  const CaptureId continuous =
      Record({"a"}, {.mode = CaptureMode::kContinuous, .retention = {.bytes = 4'000'000}});
  stored_[continuous] = use_.store_bytes = 4'000'000;
  Restart();
  Connect("a");
  Advance(kSecondNs);
  EXPECT_EQ(coordinator_->FindRunning(continuous)->state, CaptureState::kRecording);
}

TEST_F(ArmingTest, IsRefusedWithTheNumbersWhereAQuotaIsUsedUp) {
  Connect("a");
  quotas_.store_bytes = 10'000'000;
  use_.store_bytes = 12'500'000;
  const auto refused = coordinator_->StartCapture({});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("12.5 MB of 10.0 MB"));
  EXPECT_THAT(orders_, IsEmpty());
}

TEST(FrameworkLeadNs, IsThatOfTracesByTimeAlone) {
  EXPECT_EQ(FrameworkLeadNs({}), 0u);
  CaptureSpec spec{.filter = {.frameworks = {"pytorch"}}};
  EXPECT_EQ(FrameworkLeadNs(spec), limits::kFrameworkLeadNs);
  spec.filter.framework_steps = 5;
  EXPECT_EQ(FrameworkLeadNs(spec), 0u);
}

}  // namespace
}  // namespace neurontrace
