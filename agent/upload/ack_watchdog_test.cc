// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/ack_watchdog.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(AckWatchdog, CountsOnlyWhileChunksWaitAndNothingIsAnswered) {
  AckWatchdog watch;
  watch.Poll(1'000, 0, 0);
  EXPECT_EQ(watch.waited_ns(), 0u);
  watch.Poll(2'000, 0, 5);
  EXPECT_EQ(watch.waited_ns(), 1'000u);
  watch.Poll(9'000, 0, 200);
  EXPECT_EQ(watch.waited_ns(), 8'000u);
  watch.Poll(10'000, 1, 200);  // slow, but it moves
  EXPECT_EQ(watch.waited_ns(), 0u);
  watch.Poll(12'000, 1, 199);
  EXPECT_EQ(watch.waited_ns(), 2'000u);
  watch.Poll(13'000, 1, 0);
  EXPECT_EQ(watch.waited_ns(), 0u);
}

// Chunks of an earlier run are there before anybody looks.
TEST(AckWatchdog, StartsCountingAtFirstPoll) {
  AckWatchdog watch;
  watch.Poll(9'000'000, 0, 12);
  EXPECT_EQ(watch.waited_ns(), 0u);
  watch.Poll(9'000'500, 0, 12);
  EXPECT_EQ(watch.waited_ns(), 500u);
}

}  // namespace
}  // namespace neurontrace
