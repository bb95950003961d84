// SPDX-License-Identifier: Apache-2.0
// The goal: no agent has another job captured than those of its own workers.
#include "aggregator/triggers/trigger_incident.h"

#include <gtest/gtest.h>

#include "aggregator/triggers/trigger_test_support.h"

namespace neurontrace {
namespace {

class FiredWorkerTest : public testing::Test {
 protected:
  FiredWorkerTest() {
    const WorkerIdentity worker{.instance_id = "i-1", .pid = 7};
    workers_[worker] = {.identity = worker, .job = "mine"};
  }
  static TriggerRule Rule(TriggerKind kind, const std::string& job = "") {
    TriggerRule rule = FakeTriggerCaptures::Rule("rule", kind);
    rule.job = job;
    return rule;
  }
  // The job that is captured; "-": none.
  std::string Take(const TriggerRule& rule, TriggerFired fired) {
    return TakeJobFromInventory(workers_, &rule, fired) ? fired.job : "-";
  }

  std::map<WorkerIdentity, WorkerInfo> workers_;
};

TEST_F(FiredWorkerTest, TheJobIsThatOfTheAgentsOwnWorker) {
  const TriggerRule slow = Rule(TriggerKind::kSlowExecution);
  EXPECT_EQ(Take(slow, FakeTriggerCaptures::Fired("rule", "mine", 7)), "mine");
  EXPECT_EQ(Take(slow, FakeTriggerCaptures::Fired("rule", "others", 7)), "mine");
  EXPECT_EQ(Take(slow, FakeTriggerCaptures::Fired("rule", "", 7)), "mine") << "not all jobs";
  EXPECT_EQ(Take(slow, FakeTriggerCaptures::Fired("rule", "others", 8)), "-") << "the agent has no such worker";
}

TEST_F(FiredWorkerTest, ARuleOfAJobIsForThatJob) {
  const TriggerRule died = Rule(TriggerKind::kWorkerDied, "others");
  EXPECT_EQ(Take(died, FakeTriggerCaptures::Fired("rule", "others", 7)), "-");
}

TEST_F(FiredWorkerTest, PostsAreOfTheRulesJob) {
  const TriggerKind kind = TriggerKind::kPost;
  EXPECT_EQ(Take(Rule(kind, "ruled"), FakeTriggerCaptures::Fired("rule", "others", 0)), "ruled");
  EXPECT_EQ(Take(Rule(kind), FakeTriggerCaptures::Fired("rule", "others", 0)), "");
}

TEST_F(FiredWorkerTest, ARuleThatIsGoneIsPassedOver) {
  TriggerFired fired = FakeTriggerCaptures::Fired("gone", "mine", 7);
  EXPECT_FALSE(TakeJobFromInventory(workers_, nullptr, fired));
}

}  // namespace
}  // namespace neurontrace
