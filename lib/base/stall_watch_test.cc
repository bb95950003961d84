// SPDX-License-Identifier: Apache-2.0
#include "lib/base/stall_watch.h"

#include <gtest/gtest.h>

#include <optional>

#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

class StallWatchTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  FakeTaskRunner runner_{clock_};
  int ended_ = 0;
  std::optional<StallWatch> watch_{std::in_place, runner_,
                                   StallWatch::Options{.period_ns = 100, .least = 10},
                                   [this] { ++ended_; }};
};

TEST_F(StallWatchTest, EndsOnceWhereNothingComes) {
  runner_.AdvanceNs(99);
  EXPECT_EQ(ended_, 0);
  runner_.AdvanceNs(1);
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(watch_->stalled());
  runner_.AdvanceNs(1000);
  EXPECT_EQ(ended_, 1);
}

TEST_F(StallWatchTest, EndsWhereTooLittleComesInOnePeriod) {
  watch_->Progress(1000);  // what comes early does not count for later
  runner_.AdvanceNs(100);
  watch_->Progress(9);
  EXPECT_EQ(ended_, 0);
  runner_.AdvanceNs(100);
  EXPECT_EQ(ended_, 1);
}

TEST_F(StallWatchTest, KeepsMovingTransfers) {
  for (int i = 0; i < 50; ++i) {
    watch_->Progress(5);
    runner_.AdvanceNs(50);
  }
  EXPECT_EQ(ended_, 0);
  EXPECT_FALSE(watch_->stalled());
}

TEST_F(StallWatchTest, EndsNothingOnceItIsGone) {
  watch_.reset();
  runner_.AdvanceNs(1000);
  EXPECT_EQ(ended_, 0);
}

}  // namespace
}  // namespace neurontrace
