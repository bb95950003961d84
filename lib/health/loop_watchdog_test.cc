// SPDX-License-Identifier: Apache-2.0
#include "lib/health/loop_watchdog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/fake_task_runner.h"
#include "lib/base/time_units.h"
#include "lib/health/health_state.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class LoopWatchdogTest : public ::testing::Test {
 protected:
  LoopWatchdogTest() {
    health_.Watch("sequence", HealthState::Severity::kLiveness,
                  [this] { return turns_.DescribeStuck(); });
  }
  // As a daemon's timer.
  void Publish() {
    turns_.Turn();
    runner_.PostDelayedTask([this] { Publish(); }, kNsPerSecond);
  }

  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  LoopWatchdog turns_{clock_};
  HealthState health_;
};

TEST_F(LoopWatchdogTest, ASequenceThatHasNotBegunHasAllTheTimeItNeeds) {
  clock_.AdvanceNs(3'600 * kNsPerSecond);  // a store is repaired
  EXPECT_FALSE(turns_.AgeNs());
  EXPECT_TRUE(health_.live());
  Publish();
  EXPECT_EQ(turns_.AgeNs(), 0u);
}

TEST_F(LoopWatchdogTest, HangingRunnerReportsAgeOfLastTurn) {
  Publish();
  runner_.AdvanceNs(500 * kNsPerSecond);
  EXPECT_LE(*turns_.AgeNs(), kNsPerSecond);
  EXPECT_TRUE(health_.live());
  const uint64_t age_ns = *turns_.AgeNs();
  clock_.AdvanceNs(40 * kNsPerSecond);  // and no task runs
  EXPECT_EQ(turns_.AgeNs(), age_ns + 40 * kNsPerSecond);
  EXPECT_TRUE(health_.live());
  clock_.AdvanceNs(limits::kSequenceStuckNs);
  EXPECT_FALSE(health_.live());
  EXPECT_FALSE(health_.ready());
  EXPECT_THAT(health_.Describe(true), HasSubstr("NOT sequence: no task"));
  runner_.RunUntilIdle();
  EXPECT_TRUE(health_.live());
}

TEST_F(LoopWatchdogTest, IgnoresIdleRunner) {
  Publish();
  turns_.Rest();
  clock_.AdvanceNs(2 * limits::kSequenceStuckNs);
  EXPECT_FALSE(turns_.AgeNs());
  EXPECT_TRUE(health_.live());
}

}  // namespace
}  // namespace neurontrace
