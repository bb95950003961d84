// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include "lib/base/clock.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// A TaskRunner of tests: tasks run when the test says so, on its thread, in the order of their due
// times, and time passes only by AdvanceNs. `clock` must outlive it. Watches are never polled: a
// test fires them.
class FakeTaskRunner final : public TaskRunner {
 public:
  explicit FakeTaskRunner(FakeClock& clock) : clock_(clock) {}

  void PostTask(Task task) override { tasks_.emplace(clock_.MonotonicNs(), std::move(task)); }
  void PostDelayedTask(Task task, uint64_t delay_ns) override {
    tasks_.emplace(clock_.MonotonicNs() + delay_ns, std::move(task));
  }
  void AddReadableWatch(int fd, Task task) override { watches_[fd] = std::move(task); }
  void RemoveReadableWatch(int fd) override { watches_.erase(fd); }
  bool RunsTasksOnCurrentThread() const override { return true; }

  // Runs the tasks that are due now, and those that they post, until nothing is due. Does not
  // return if tasks post each other without a delay for ever.
  void RunUntilIdle() {
    while (!tasks_.empty() && tasks_.begin()->first <= clock_.MonotonicNs()) {
      Task task = std::move(tasks_.begin()->second);
      tasks_.erase(tasks_.begin());
      task();
    }
  }
  // Advances time and runs each task at its due time on the way, so that tasks read the time they
  // asked for.
  void AdvanceNs(uint64_t ns) {
    const uint64_t end = clock_.MonotonicNs() + ns;
    RunUntilIdle();
    while (!tasks_.empty() && tasks_.begin()->first <= end) {
      clock_.AdvanceNs(tasks_.begin()->first - clock_.MonotonicNs());
      RunUntilIdle();
    }
    clock_.AdvanceNs(end - clock_.MonotonicNs());
  }
  // Returns the number of watches that were not removed.
  size_t watches() const { return watches_.size(); }
  // Acts as if `fd` had become readable. The copy keeps the task alive if it removes its own watch.
  void FireWatch(int fd) {
    const auto it = watches_.find(fd);
    if (it != watches_.end()) Task(it->second)();
  }
  // Fires each watch: for a test that cannot know which number a passed descriptor got.
  void FireAllWatches() {
    const std::map<int, Task> now = watches_;
    for (const auto& watch : now) FireWatch(watch.first);
  }

 private:
  FakeClock& clock_;
  // By due time, equal ones in the order in which they were posted.
  std::multimap<uint64_t, Task> tasks_;
  std::map<int, Task> watches_;
};

}  // namespace neurontrace
