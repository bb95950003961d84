// SPDX-License-Identifier: Apache-2.0
// The goal: a call waits for its sequence, gives up on one that does not come, and is then not run.
#include "base/call_on.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/event_loop.h"

namespace neurontrace {
namespace {

TEST(CallOn, GivesWhatTheFunctionReturns) {
  EventLoop loop;
  std::thread thread([&loop] { loop.Run(); });
  const auto answer = CallOn(loop, std::chrono::minutes(1),
                             [&] { return loop.RunsTasksOnCurrentThread() ? 5 : 6; });
  EXPECT_EQ(answer, 5);
  loop.Quit();
  thread.join();
}

TEST(CallOn, RunsNothingThatItDoesNotWaitForAnyMore) {
  EventLoop loop;  // whose turn does not come
  std::atomic<bool> ran = false;
  EXPECT_FALSE(CallOn(loop, std::chrono::milliseconds(0), [&] { return ran = true; }).has_value());
  loop.PostTask([&loop] { loop.Quit(); });
  loop.Run();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace neurontrace
