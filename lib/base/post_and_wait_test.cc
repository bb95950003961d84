// SPDX-License-Identifier: Apache-2.0
// The goal: a call waits for its sequence, gives up on one that does not come, and is then not run.
#include "lib/base/post_and_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "lib/base/event_loop.h"

namespace neurontrace {
namespace {

constexpr std::chrono::minutes kLong{1};

TEST(PostAndWait, ReturnsTheFunctionsResult) {
  EventLoop loop;
  std::thread thread([&loop] { loop.Run(); });
  const absl::StatusOr<int> answer =
      PostAndWait(loop, "the loop", kLong, [&] { return loop.RunsTasksOnCurrentThread() ? 5 : 6; });
  EXPECT_EQ(answer.value_or(0), 5);
  const absl::StatusOr<int> failed = PostAndWait(
      loop, "the loop", kLong, []() -> absl::StatusOr<int> { return NotFound("none"); });
  EXPECT_TRUE(absl::IsNotFound(failed.status()));
  bool ran = false;
  EXPECT_TRUE(PostAndWait(loop, "the loop", kLong, [&ran] { ran = true; }).ok());
  EXPECT_TRUE(ran);
  loop.Quit();
  thread.join();
}

TEST(PostAndWait, NamesUnresponsiveRunnerAndNeverRunsFunction) {
  EventLoop loop;  // does not run yet
  std::atomic<bool> ran = false;
  const absl::Status status =
      PostAndWait(loop, "the loop", std::chrono::milliseconds(1), [&] { ran = true; });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_EQ(status.message(), "the loop did not answer within 0.001 s; try again");
  loop.PostTask([&loop] { loop.Quit(); });
  loop.Run();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace neurontrace
