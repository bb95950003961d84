// SPDX-License-Identifier: Apache-2.0
// The goal: an agent says that a rule fires when it does, and at no other time. JSON of workers
// goes in, what the aggregator would hear comes out; time is advanced.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/triggers/agent_triggers.h"
#include "agent/triggers/trigger_test_support.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr uint64_t kSecondNs = AgentTriggersWorld::kSecondNs;

class AgentTriggersTest : public testing::Test, protected AgentTriggersWorld {};

TEST_F(AgentTriggersTest, EvaluatesNothingWithoutRule) {
  EXPECT_FALSE(ShowEvent(1, 0));
  triggers.SetRules({Rule("died", TriggerKind::kWorkerDied), Rule("p", TriggerKind::kPost)});
  EXPECT_FALSE(ShowEvent(1, 0));
  TriggerRule of_another = Rule("s", TriggerKind::kSilentCore);
  of_another.job = "another";
  triggers.SetRules({of_another});
  EXPECT_FALSE(ShowEvent(1, 0));
  EXPECT_TRUE(ShowEvent(1, 0, "x", "another"));
  EXPECT_EQ(triggers.counters().events, 1u);
}

TEST_F(AgentTriggersTest, SkipsDataFetchedLongAgo) {
  triggers.SetRules({Rule("silent", TriggerKind::kSilentCore)});
  const std::string event =
      R"({"event_type":"hw_notify","phase":"instant","nc_idx":0,"timestamp_ns":5,"data":{}})";
  EXPECT_FALSE(Show(1, event, "j", limits::kTriggerStaleNs + 1));
  EXPECT_EQ(triggers.counters().stale, 1u);
  EXPECT_EQ(triggers.counters().events, 0u);
  EXPECT_TRUE(Show(1, event, "j", limits::kTriggerStaleNs));
  EXPECT_TRUE(Show(2, event, "j", static_cast<uint64_t>(-5)));  // of the future
  EXPECT_EQ(triggers.counters().events, 2u);
}

TEST_F(AgentTriggersTest, ReportsSilentCoreWhileOthersAreActive) {
  triggers.SetRules({Rule("silent", TriggerKind::kSilentCore)});
  ShowEvent(1, 0);
  ShowEvent(1, 1);
  for (int i = 0; i < 3; ++i) {
    Pass(kSecondNs);
    ShowEvent(1, 1);
  }
  EXPECT_THAT(aggregator.told, IsEmpty());
  Pass(kSecondNs + kSecondNs / 2);
  ASSERT_THAT(aggregator.told, SizeIs(1));
  EXPECT_THAT(aggregator.told[0].cause, HasSubstr("i-1 pid 1 nc 0: no events for 4"));
  for (int i = 0; i < 10; ++i) {  // reported once
    Pass(kSecondNs);
    ShowEvent(1, 1);
  }
  EXPECT_THAT(aggregator.told, SizeIs(1));
  ShowEvent(1, 0);  // awake, and silent again
  for (int i = 0; i < 5; ++i) {
    Pass(kSecondNs);
    ShowEvent(1, 1);
  }
  EXPECT_THAT(aggregator.told, SizeIs(2));
}

TEST_F(AgentTriggersTest, ComparesCoresOfOneJobOverWorkers) {
  triggers.SetRules({Rule("silent", TriggerKind::kSilentCore)});
  ShowEvent(1, 0);
  for (int i = 0; i < 8; ++i) {
    ShowEvent(2, 0, "nrt_execute", "another");
    Pass(kSecondNs);
  }
  EXPECT_THAT(aggregator.told, IsEmpty());
  ShowEvent(2, 0);  // worker 2 is of this job after all
  Pass(kSecondNs);
  ASSERT_THAT(aggregator.told, SizeIs(1));
  EXPECT_EQ(aggregator.told[0].worker, Worker(1));
}

TEST_F(AgentTriggersTest, ReportsNoSilentCoreWithoutExpectation) {
  triggers.SetRules({Rule("silent", TriggerKind::kSilentCore)});
  ShowEvent(1, 0);
  triggers.OnTraceEdge(Worker(1));  // its trace has stopped
  ShowEvent(2, 0);
  for (int i = 0; i < 8; ++i) {
    Pass(kSecondNs);
    ShowEvent(2, 0);
  }
  EXPECT_THAT(aggregator.told, IsEmpty());
  ShowEvent(1, 0);
  for (int i = 0; i < 8; ++i) {  // what it has is not read: it may have had events
    Pass(kSecondNs, {2});
    ShowEvent(2, 0);
  }
  EXPECT_THAT(aggregator.told, IsEmpty());
  triggers.OnWorkerRemoved(Worker(1));
  Pass(kSecondNs);
  EXPECT_THAT(aggregator.told, IsEmpty());
}

TEST_F(AgentTriggersTest, IgnoresSilenceDuringOwnPause) {
  triggers.SetRules({Rule("silent", TriggerKind::kSilentCore)});
  ShowEvent(1, 0);
  ShowEvent(1, 1);
  Pass(kSecondNs);
  clock.AdvanceNs(60 * kSecondNs);
  ShowEvent(1, 1);
  triggers.OnPolled(Worker(1), true);
  runner.RunUntilIdle();
  EXPECT_THAT(aggregator.told, IsEmpty());
}

TEST_F(AgentTriggersTest, ReportsDeadWorker) {
  TriggerRule rule = Rule("died", TriggerKind::kWorkerDied);
  rule.job = "j";
  triggers.SetRules({rule});
  triggers.OnWorkerDied(Worker(7), "another");
  EXPECT_THAT(aggregator.told, IsEmpty());
  triggers.OnWorkerDied(Worker(7), "j");
  ASSERT_THAT(aggregator.told, SizeIs(1));
  EXPECT_THAT(aggregator.told[0].cause,
              HasSubstr("i-1 pid 7: the process ended without closing its runtime"));
}

TEST_F(AgentTriggersTest, AcceptsPostsWithinLimits) {
  triggers.SetRules({Rule("alert", TriggerKind::kPost), Rule("died", TriggerKind::kWorkerDied)});
  using Posted = AgentTriggers::Posted;
  EXPECT_EQ(triggers.Post("alarm", "").posted, Posted::kNoRule);
  EXPECT_EQ(triggers.Post("died", "").posted, Posted::kNotPosted);
  aggregator.connected = false;
  EXPECT_EQ(triggers.Post("alert", "").posted, Posted::kUndelivered);
  aggregator.connected = true;
  EXPECT_EQ(triggers.Post("alert", "loss\x01 is nan").posted, Posted::kReported);
  EXPECT_EQ(aggregator.told[0].cause, "i-1: POST: loss? is nan");
  clock.AdvanceNs(59 * kSecondNs);
  const AgentTriggers::PostOutcome outcome = triggers.Post("alert", "");
  EXPECT_EQ(outcome.posted, Posted::kCoolsDown);
  EXPECT_EQ(outcome.retry_ns, kSecondNs);
  clock.AdvanceNs(kSecondNs);
  EXPECT_EQ(triggers.Post("alert", "").posted, Posted::kReported);
  EXPECT_EQ(aggregator.told[1].cause, "i-1: POST");
}

TEST_F(AgentTriggersTest, RejectsInvalidRule) {
  TriggerRule bad = Rule("bad", TriggerKind::kSlowExecution);
  bad.times_median = 0;
  triggers.SetRules({bad, Rule("good", TriggerKind::kPost)});
  EXPECT_EQ(triggers.rules(), 1u);
  EXPECT_EQ(triggers.counters().rules_refused, 1u);
}

}  // namespace
}  // namespace neurontrace
