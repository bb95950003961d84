// SPDX-License-Identifier: Apache-2.0
// The goal: one incident makes one capture, of the whole job, that names its cause, and no rule
// makes more of them than it may. Time is advanced; captures are a fake's.
#include "aggregator/triggers/trigger_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/triggers/trigger_test_support.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr uint64_t kSecondNs = FakeTriggerCaptures::kSecondNs;

class TriggerEngineTest : public testing::Test {
 protected:
  static TriggerFired Fired(const std::string& rule, const std::string& job, uint32_t pid) {
    return FakeTriggerCaptures::Fired(rule, job, pid);
  }
  static TriggerRule Rule(const std::string& name) { return FakeTriggerCaptures::Rule(name); }
  // Says it, and lets the others have their time.
  void Fire(const std::string& rule, const std::string& job = "j", uint32_t pid = 1) {
    engine_.OnFired(Fired(rule, job, pid));
    runner_.AdvanceNs(TriggerEngine::kGatherNs);
  }
  void EndCaptures() { captures_.running.clear(); }
  uint64_t Suppressed(TriggerSuppression reason) const {
    return engine_.counters().suppressed[static_cast<size_t>(reason)];
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeTriggerCaptures captures_;
  TriggerEngine engine_{clock_, runner_, captures_};
};

TEST_F(TriggerEngineTest, MakesAStreamOfTheJobWhereThePastIsNotHeld) {
  engine_.SetRules({Rule("slow")});
  Fire("slow");
  ASSERT_THAT(captures_.started, SizeIs(1));
  const CaptureSpec& spec = captures_.started[0];
  EXPECT_EQ(spec.mode, CaptureMode::kStream);
  EXPECT_EQ(spec.selection.job, "j");
  EXPECT_EQ(spec.timing.duration_ns, 10 * kSecondNs);
  EXPECT_EQ(spec.timing.last_ns, 0u);
  EXPECT_EQ(spec.name, "slow");
  EXPECT_EQ(spec.cause, "trigger slow: core 0 of pid 1 is slow");
  ASSERT_THAT(spec.labels, SizeIs(1));
  EXPECT_EQ(spec.labels[0], (KeyValue{"trigger", "slow"}));
  const TriggerStatus status = engine_.List()[0];
  EXPECT_EQ(status.fired, 1u);
  EXPECT_EQ(status.last_cause, "core 0 of pid 1 is slow");
  EXPECT_EQ(status.last_capture, FakeTriggerCaptures::Id(1));
  EXPECT_EQ(status.last_fired_realtime_ns, clock_.RealtimeNs());
  EXPECT_EQ(status.last_problem, "");
}

TEST_F(TriggerEngineTest, RecordsOnlyWhomAVerdictConcerns) {
  engine_.SetRules({FakeTriggerCaptures::Rule("slow", TriggerKind::kVerdict)});
  TriggerFired fired = Fired("slow", "j", 1);
  fired.narrowed.worker_gids = {{8, 9}};
  engine_.OnFired(fired);
  runner_.AdvanceNs(TriggerEngine::kGatherNs);
  ASSERT_THAT(captures_.started, SizeIs(1));
  EXPECT_EQ(captures_.started[0].selection.job, "j");
  EXPECT_EQ(captures_.started[0].selection.worker_gids, fired.narrowed.worker_gids);
}

// Of all workers that reported, and of those that a verdict names.
TEST_F(TriggerEngineTest, TakesStacksIfTheRuleAsksForThem) {
  TriggerRule rule = Rule("slow");
  engine_.SetRules({rule, Rule("quiet")});
  Fire("slow");
  Fire("quiet");
  EXPECT_THAT(captures_.stacks, IsEmpty());
  EndCaptures();
  runner_.AdvanceNs(rule.cool_down_ns);
  rule.stacks = true;
  engine_.SetRules({rule});
  TriggerFired first = Fired("slow", "j", 1);
  first.suspects = {Fired("slow", "j", 3).worker, first.worker};
  engine_.OnFired(first);
  Fire("slow", "j", 2);
  ASSERT_THAT(captures_.stacks, SizeIs(1));
  EXPECT_EQ(captures_.stacks[0].first, FakeTriggerCaptures::Id(3));
  EXPECT_THAT(captures_.stacks[0].second,
              ElementsAre(Fired("slow", "j", 1).worker, Fired("slow", "j", 2).worker,
                          Fired("slow", "j", 3).worker));
}

// The events are in another capture: the stacks go there.
TEST_F(TriggerEngineTest, TakesStacksForTheCaptureThatRecords) {
  TriggerRule rule = Rule("slow");
  rule.stacks = true;
  engine_.SetRules({rule});
  captures_.recorder = FakeTriggerCaptures::Id(9);
  Fire("slow");
  ASSERT_THAT(captures_.stacks, SizeIs(1));
  EXPECT_EQ(captures_.stacks[0].first, FakeTriggerCaptures::Id(9));
}

TEST_F(TriggerEngineTest, MakesASnapshotOfTheFlightRecorder) {
  engine_.SetRules({Rule("slow")});
  captures_.flight_recorder = FakeTriggerCaptures::Id(99);
  captures_.flight_recorder_job = "j";
  Fire("slow");
  ASSERT_THAT(captures_.started, SizeIs(1));
  EXPECT_EQ(captures_.started[0].mode, CaptureMode::kSnapshot);
  EXPECT_EQ(captures_.started[0].timing.last_ns, 20 * kSecondNs);
  EXPECT_EQ(captures_.started[0].timing.duration_ns, 0u);
  EXPECT_EQ(captures_.started[0].timing.flight_recorder, FakeTriggerCaptures::Id(99));
}

TEST_F(TriggerEngineTest, StreamsWhereTheSnapshotIsRefused) {
  engine_.SetRules({Rule("slow")});
  captures_.flight_recorder = FakeTriggerCaptures::Id(99);
  captures_.flight_recorder_job = "j";
  captures_.snapshot_refusal = FailedPrecondition("not known which");
  Fire("slow");
  ASSERT_THAT(captures_.started, SizeIs(1));
  EXPECT_EQ(captures_.started[0].mode, CaptureMode::kStream);
}

TEST_F(TriggerEngineTest, ReportsNothingToRecord) {
  TriggerRule rule = Rule("slow");
  rule.duration_ns = 0;
  engine_.SetRules({rule});
  Fire("slow");
  EXPECT_THAT(captures_.started, IsEmpty());
  EXPECT_THAT(engine_.List()[0].last_problem, HasSubstr("no flight recorder is on for job j"));
  EXPECT_EQ(Suppressed(TriggerSuppression::kRefused), 1u);
}

TEST_F(TriggerEngineTest, CountsTheOtherRanksIntoOneCapture) {
  engine_.SetRules({Rule("slow")});
  for (uint32_t pid = 1; pid <= 5; ++pid) engine_.OnFired(Fired("slow", "j", pid));
  engine_.OnFired(Fired("slow", "j", 5));  // twice the same
  EXPECT_THAT(captures_.started, IsEmpty());
  runner_.AdvanceNs(TriggerEngine::kGatherNs);
  ASSERT_THAT(captures_.started, SizeIs(1));
  EXPECT_EQ(captures_.started[0].cause, "trigger slow: core 0 of pid 1 is slow (and 4 more)");
  engine_.OnFired(Fired("slow", "j", 6));  // while it records
  EXPECT_EQ(engine_.List()[0].last_cause, "core 0 of pid 1 is slow (and 5 more)");
  EXPECT_EQ(Suppressed(TriggerSuppression::kSameIncident), 6u);
  EXPECT_EQ(engine_.List()[0].suppressed, 6u);
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerEngineTest, CountsNoMoreWorkersThanItsLimit) {
  engine_.SetRules({Rule("slow")});
  for (uint32_t pid = 1; pid <= limits::kTriggerIncidentWorkersMax + 10; ++pid) {
    engine_.OnFired(Fired("slow", "j", pid));
  }
  runner_.AdvanceNs(TriggerEngine::kGatherNs);
  EXPECT_THAT(captures_.started[0].cause, HasSubstr("(and 4095 or more)"));
}

TEST_F(TriggerEngineTest, CoolsDownToTheNanosecond) {
  engine_.SetRules({Rule("slow")});
  Fire("slow");
  EndCaptures();
  runner_.AdvanceNs(60 * kSecondNs - 1);
  engine_.OnFired(Fired("slow", "j", 1));
  EXPECT_EQ(Suppressed(TriggerSuppression::kCoolDown), 1u);
  EXPECT_THAT(engine_.List()[0].last_problem, HasSubstr("cool-down period for another 1s"));
  runner_.AdvanceNs(1);
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(2));
  EXPECT_EQ(engine_.List()[0].last_problem, "");
}

TEST_F(TriggerEngineTest, CoolsDownForEachJobAlone) {
  engine_.SetRules({Rule("slow")});
  Fire("slow", "j");
  Fire("slow", "k");
  EXPECT_THAT(captures_.started, SizeIs(2));
  EXPECT_EQ(captures_.started[1].selection.job, "k");
}

TEST_F(TriggerEngineTest, MakesNoMoreThanItsNumberAnHour) {
  TriggerRule rule = Rule("slow");
  rule.cool_down_ns = kSecondNs;
  engine_.SetRules({rule});
  for (int i = 0; i < 5; ++i) {
    Fire("slow", "job-" + std::to_string(i));  // over all jobs
    EndCaptures();
    runner_.AdvanceNs(10 * kSecondNs);
  }
  EXPECT_THAT(captures_.started, SizeIs(3));
  EXPECT_EQ(Suppressed(TriggerSuppression::kPerHour), 2u);
  runner_.AdvanceNs(3'600 * kSecondNs - 50 * kSecondNs - 5 * TriggerEngine::kGatherNs);
  Fire("slow");  // an hour after the first began, less what that had gathered
  EXPECT_THAT(captures_.started, SizeIs(3));
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(4));
}

// All jobs of a fabric within the time in which each waits for its other ranks.
TEST_F(TriggerEngineTest, MakesNoMoreThanItsNumberAnHourOfJobsThatFireAtOnce) {
  engine_.SetRules({Rule("slow")});
  for (int i = 0; i < 20; ++i) engine_.OnFired(Fired("slow", "job-" + std::to_string(i), 1));
  runner_.AdvanceNs(kSecondNs);
  EXPECT_THAT(captures_.started, SizeIs(3));
  EXPECT_EQ(engine_.List()[0].fired, 3u);
  EXPECT_EQ(Suppressed(TriggerSuppression::kPerHour), 17u);
  EXPECT_THAT(engine_.List()[0].last_problem, HasSubstr("per-hour is 3"));
}

TEST_F(TriggerEngineTest, StartsNoneWhileCaptureRuns) {
  TriggerRule rule = Rule("slow");
  rule.cool_down_ns = kSecondNs;
  engine_.SetRules({rule});
  Fire("slow");
  runner_.AdvanceNs(100 * kSecondNs);
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(1));
  EndCaptures();
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(2));
}

TEST_F(TriggerEngineTest, LeavesItToTheCaptureThatRecordsIt) {
  engine_.SetRules({Rule("slow")});
  captures_.recorder = FakeTriggerCaptures::Id(50);
  Fire("slow");
  EXPECT_THAT(captures_.started, IsEmpty());
  EXPECT_THAT(engine_.List()[0].last_problem, HasSubstr("already records it"));
  captures_.recorder = CaptureId();
  Fire("slow");  // that one has ended: no cool-down of it
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerEngineTest, TriesAgainSoonAfterACaptureThatCouldNotBegin) {
  engine_.SetRules({Rule("slow")});
  captures_.refusal = ResourceExhausted("16 captures are running");
  Fire("slow");
  EXPECT_EQ(engine_.List()[0].last_problem, "16 captures are running");
  EXPECT_EQ(engine_.List()[0].fired, 0u);
  captures_.refusal = absl::OkStatus();
  runner_.AdvanceNs(TriggerEngine::kRefusedRestNs);
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(1));
}

// A capture that ended before it began was none: neither cool-down nor hour are of it.
TEST_F(TriggerEngineTest, ACaptureThatDidNotBeginCountsForNothing) {
  TriggerRule rule = Rule("slow");
  rule.per_hour_max = 1;
  engine_.SetRules({rule});
  Fire("slow");
  EXPECT_EQ(engine_.List()[0].fired, 1u);
  EndCaptures();
  CaptureRecord record{.id = FakeTriggerCaptures::Id(1)};
  record.spec.selection.job = "j";
  record.state = CaptureState::kNotBegun;
  engine_.OnNotBegun(record, "2 other profiler");
  EXPECT_EQ(engine_.List()[0].fired, 0u);
  EXPECT_THAT(engine_.List()[0].last_problem, HasSubstr("did not start: 2 other profiler"));
  EXPECT_EQ(Suppressed(TriggerSuppression::kRefused), 1u);
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(1)) << "not immediately";
  runner_.AdvanceNs(TriggerEngine::kRefusedRestNs);
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(2));
  EXPECT_EQ(engine_.List()[0].last_problem, "");
}

TEST_F(TriggerEngineTest, StreamsWhereTheSnapshotDoesNotBegin) {
  engine_.SetRules({Rule("slow")});
  captures_.flight_recorder = FakeTriggerCaptures::Id(99);
  captures_.flight_recorder_job = "j";
  Fire("slow");
  EndCaptures();
  CaptureRecord record{.id = FakeTriggerCaptures::Id(1)};
  record.spec.selection.job = "j";
  engine_.OnNotBegun(record, "no ring is held");
  EXPECT_THAT(captures_.started, SizeIs(1)) << "not from within the coordinator";
  runner_.RunUntilIdle();
  ASSERT_THAT(captures_.started, SizeIs(2));
  EXPECT_EQ(captures_.started[1].mode, CaptureMode::kStream);
  EXPECT_EQ(captures_.started[1].timing.duration_ns, 10 * kSecondNs);
  EXPECT_EQ(engine_.List()[0].fired, 1u);
  EXPECT_EQ(engine_.List()[0].last_capture, FakeTriggerCaptures::Id(2));
  record.id = FakeTriggerCaptures::Id(2);
  engine_.OnNotBegun(record, "gone");
  EXPECT_EQ(engine_.List()[0].fired, 0u);
}

// A continuous capture is suspended for the rule's, which names the capture that has what came
// before.
TEST_F(TriggerEngineTest, ReportsWhereEarlierDataIs) {
  engine_.SetRules({Rule("slow")});
  captures_.continuous = {FakeTriggerCaptures::Id(50), 600 * kSecondNs};
  Fire("slow");
  ASSERT_THAT(captures_.started, SizeIs(1));
  EXPECT_EQ(captures_.started[0].mode, CaptureMode::kStream);
  EXPECT_EQ(captures_.started[0].cause,
            "trigger slow: core 0 of pid 1 is slow; earlier events are in continuous capture " +
                FakeTriggerCaptures::Id(50).ToString() + ", for 10m");
}

TEST_F(TriggerEngineTest, LeavesItToTheContinuousCaptureWhereItIsToRecordNothingItself) {
  TriggerRule rule = Rule("slow");
  rule.duration_ns = 0;
  engine_.SetRules({rule});
  captures_.continuous = {FakeTriggerCaptures::Id(50), 0};
  Fire("slow");
  EXPECT_THAT(captures_.started, IsEmpty());
  EXPECT_EQ(engine_.List()[0].last_problem,
            "continuous capture " + FakeTriggerCaptures::Id(50).ToString() +
                " records it, while its size allows; export it, or set record-for to capture the "
                "following events separately");
  EXPECT_EQ(Suppressed(TriggerSuppression::kRecorded), 1u);
}

TEST_F(TriggerEngineTest, AnswersByRuleName) {
  engine_.SetRules({Rule("alert")});
  TriggerEngine::Answer answer = engine_.Fire(Fired("alert", "", 0));
  EXPECT_EQ(answer.capture, FakeTriggerCaptures::Id(1));
  EXPECT_EQ(answer.problem, "");
  answer = engine_.Fire(Fired("alert", "", 0));  // continues
  EXPECT_EQ(answer.suppression, TriggerSuppression::kSameIncident);
  EXPECT_EQ(answer.capture, FakeTriggerCaptures::Id(1));
  EndCaptures();
  answer = engine_.Fire(Fired("alert", "", 0));
  EXPECT_EQ(answer.suppression, TriggerSuppression::kCoolDown);
  EXPECT_EQ(answer.retry_ns, 60 * kSecondNs);
  EXPECT_FALSE(engine_.Fire(Fired("alarm", "", 0)).is_known);
  EXPECT_EQ(engine_.counters().unknown, 1u);
}

TEST_F(TriggerEngineTest, KeepsWhatItKnowsOfRulesThatAreReadAgain) {
  engine_.SetRules({Rule("slow"), Rule("other")});
  Fire("slow");
  EndCaptures();
  engine_.SetRules({Rule("other")});
  EXPECT_EQ(engine_.Find("slow"), nullptr);
  Fire("slow");
  EXPECT_EQ(engine_.counters().unknown, 1u);
  engine_.SetRules({Rule("slow")});
  Fire("slow");
  EXPECT_EQ(Suppressed(TriggerSuppression::kCoolDown), 1u);
  EXPECT_EQ(engine_.List()[0].fired, 1u);
}

TEST_F(TriggerEngineTest, ForgetsPendingIncidentOfRemovedRule) {
  engine_.SetRules({Rule("slow")});
  engine_.OnFired(Fired("slow", "j", 1));
  engine_.SetRules({});
  runner_.AdvanceNs(kSecondNs);
  EXPECT_THAT(captures_.started, IsEmpty());
  engine_.SetRules({Rule("slow")});
  Fire("slow");
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerEngineTest, KnowsNoMoreJobsThanItsLimit) {
  TriggerRule rule = Rule("slow");
  rule.per_hour_max = 1;
  engine_.SetRules({rule});
  for (size_t i = 0; i < limits::kTriggerJobsMax; ++i) {
    engine_.OnFired(Fired("slow", "job-" + std::to_string(i), 1));
  }
  engine_.OnFired(Fired("slow", "one-more", 1));
  EXPECT_EQ(Suppressed(TriggerSuppression::kTooManyJobs), 1u);
  runner_.AdvanceNs(3'600 * kSecondNs);
  EndCaptures();
  engine_.OnFired(Fired("slow", "one-more", 1));
  EXPECT_EQ(Suppressed(TriggerSuppression::kTooManyJobs), 1u);
}

TEST_F(TriggerEngineTest, CanBeDestroyedWhileGathering) {
  auto engine = std::make_unique<TriggerEngine>(clock_, runner_, captures_);
  engine->SetRules({Rule("slow")});
  engine->OnFired(Fired("slow", "j", 1));
  engine.reset();
  runner_.AdvanceNs(kSecondNs);
  EXPECT_THAT(captures_.started, IsEmpty());
}

// The goal: a restart of the aggregator is no way round a cool-down or a number an hour. A new
// engine restores what was stored.

constexpr uint64_t kNsPerSecond = FakeTriggerCaptures::kSecondNs;

class TriggerRestoreTest : public testing::Test {
 protected:
  CaptureRecord Record(uint8_t number, uint64_t began_realtime_ns) {
    CaptureRecord record{.id = FakeTriggerCaptures::Id(number)};
    record.spec.selection.job = "j";
    record.spec.cause = "trigger slow: number " + std::to_string(number);
    record.spec.labels = {{"team", "a"}, {"trigger", "slow"}};
    record.started_realtime_ns = began_realtime_ns;
    return record;
  }
  void Fire() {
    engine_.OnFired(FakeTriggerCaptures::Fired("slow", "j", 1));
    runner_.AdvanceNs(TriggerEngine::kGatherNs);
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  FakeTriggerCaptures captures_;
  TriggerEngine engine_{clock_, runner_, captures_};
};

TEST_F(TriggerRestoreTest, CoolsDownFromBeforeTheRestart) {
  const uint64_t now_ns = clock_.RealtimeNs();
  engine_.Restore(Record(7, now_ns - 50 * kNsPerSecond));
  engine_.Restore(Record(6, now_ns - 5'000 * kNsPerSecond));
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  EXPECT_EQ(engine_.List()[0].fired, 2u);
  EXPECT_EQ(engine_.List()[0].last_capture, FakeTriggerCaptures::Id(7));
  EXPECT_EQ(engine_.List()[0].last_cause, "trigger slow: number 7");
  Fire();
  EXPECT_THAT(captures_.started, IsEmpty());
  runner_.AdvanceNs(10 * kNsPerSecond - TriggerEngine::kGatherNs);
  Fire();
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, CountsTheHourFromBeforeTheRestart) {
  const uint64_t now_ns = clock_.RealtimeNs();
  for (uint8_t i = 1; i <= 3; ++i) engine_.Restore(Record(i, now_ns - i * 1'000 * kNsPerSecond));
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  Fire();
  EXPECT_THAT(captures_.started, IsEmpty());
  runner_.AdvanceNs(600 * kNsPerSecond);  // the oldest is an hour old
  Fire();
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, OneThatDidNotBeginIsNotCounted) {
  CaptureRecord record = Record(7, clock_.RealtimeNs() - 20 * kNsPerSecond);
  record.state = CaptureState::kNotBegun;
  engine_.Restore(record);
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  EXPECT_EQ(engine_.List()[0].fired, 0u);
  Fire();
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, ContinuesRunningCapture) {
  engine_.Restore(Record(7, clock_.RealtimeNs() - 90 * kNsPerSecond));
  captures_.running.insert(FakeTriggerCaptures::Id(7));
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  Fire();
  EXPECT_THAT(captures_.started, IsEmpty());
}

TEST_F(TriggerRestoreTest, IsNotHeldForEverByAClockThatWasSetBack) {
  engine_.Restore(Record(7, clock_.RealtimeNs() + 1'000'000 * kNsPerSecond));
  engine_.Restore(Record(8, UINT64_MAX));
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  Fire();
  EXPECT_THAT(captures_.started, IsEmpty());
  runner_.AdvanceNs(60 * kNsPerSecond);
  Fire();
  EXPECT_THAT(captures_.started, SizeIs(1));
}

TEST_F(TriggerRestoreTest, PassesOverCapturesOfPeople) {
  CaptureRecord record = Record(7, clock_.RealtimeNs());
  record.spec.labels = {{"team", "slow"}};
  engine_.Restore(record);
  record.started_realtime_ns = 0;
  record.spec.labels = {{"trigger", "slow"}};
  engine_.Restore(record);  // of 1970
  engine_.SetRules({FakeTriggerCaptures::Rule("slow")});
  Fire();
  EXPECT_THAT(captures_.started, SizeIs(1));
}

}  // namespace
}  // namespace neurontrace
