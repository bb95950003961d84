// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap/peer_identity.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/tap/fake_proc.h"

namespace neurontrace {
namespace {

class ProcFilesTest : public ::testing::Test {
 protected:
  FakeProc proc_;
  ProcFiles files_{proc_.root()};
};

TEST_F(ProcFilesTest, ALivingProcessIsTheOneThatBeganThen) {
  proc_.Put({.pid = 7, .start_time_ticks = 100});
  EXPECT_TRUE(files_.Lives(7, 100));
  EXPECT_FALSE(files_.Lives(7, 99));  // its number was given to another one
  EXPECT_FALSE(files_.Lives(8, 100));
}

TEST_F(ProcFilesTest, AProcessThatNobodyHasWaitedForHasEnded) {
  proc_.Put({.pid = 7, .start_time_ticks = 100, .state = 'Z'});
  EXPECT_EQ(files_.StartTimeTicks(7), 100u);
  EXPECT_FALSE(files_.Lives(7, 100));
  proc_.Put({.pid = 7, .start_time_ticks = 100, .state = 'Z', .threads = 2});
  EXPECT_TRUE(files_.Lives(7, 100));
}

TEST_F(ProcFilesTest, AStoppedProcessLives) {
  proc_.Put({.pid = 7, .start_time_ticks = 100, .state = 'T'});
  EXPECT_TRUE(files_.Lives(7, 100));
}

}  // namespace
}  // namespace neurontrace
