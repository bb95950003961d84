// SPDX-License-Identifier: Apache-2.0
// Tasks run in order, delays are kept, a watch may remove itself, Quit ends Run.
#include "lib/base/event_loop.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "lib/base/fake_task_runner.h"

namespace neurontrace {
namespace {

TEST(EventLoop, RunsTasksOfOneThreadInOrder) {
  EventLoop loop;
  std::vector<int> seen;
  std::thread poster([&] {
    for (int i = 0; i < 100; ++i) loop.PostTask([&seen, i] { seen.push_back(i); });
    loop.PostTask([&] { loop.Quit(); });
  });
  loop.Run();
  poster.join();
  ASSERT_EQ(seen.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[i], i);
}

TEST(EventLoop, RunsDelayedTasksByTime) {
  EventLoop loop;
  std::vector<int> seen;
  loop.PostDelayedTask(
      [&] {
        seen.push_back(2);
        loop.Quit();
      },
      2'000'000);
  loop.PostDelayedTask([&] { seen.push_back(1); }, 1'000'000);
  loop.Run();
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

TEST(EventLoop, LetsAWatchRemoveItself) {
  EventLoop loop;
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  int fired = 0;
  loop.PostTask([&] {
    loop.AddReadableWatch(fds[0], [&] {
      ++fired;
      loop.RemoveReadableWatch(fds[0]);
      loop.PostDelayedTask([&] { loop.Quit(); }, 1'000'000);
    });
    ASSERT_EQ(write(fds[1], "x", 1), 1);
  });
  loop.Run();
  EXPECT_EQ(fired, 1);  // still readable, no longer watched
  close(fds[0]);
  close(fds[1]);
}

TEST(FakeTaskRunner, StopsAtEveryPendingTask) {
  FakeClock clock;
  FakeTaskRunner runner(clock);
  const uint64_t start = clock.MonotonicNs();
  std::vector<uint64_t> at;
  runner.PostDelayedTask([&] { at.push_back(clock.MonotonicNs() - start); }, 20);
  runner.PostDelayedTask(
      [&] {
        at.push_back(clock.MonotonicNs() - start);
        runner.PostDelayedTask([&] { at.push_back(clock.MonotonicNs() - start); }, 5);
      },
      10);
  runner.AdvanceNs(100);
  EXPECT_EQ(at, (std::vector<uint64_t>{10, 15, 20}));
  EXPECT_EQ(clock.MonotonicNs() - start, 100u);
}

}  // namespace
}  // namespace neurontrace
