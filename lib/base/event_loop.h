// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"

namespace neurontrace {

// The TaskRunner of production: one thread on epoll(7), watches level-triggered. The thread that
// calls Run is the sequence. Destroyed on any thread once Run has returned; tasks that never ran
// are destroyed with it. The constructor aborts if the process has no file descriptors left.
class EventLoop final : public TaskRunner {
 public:
  EventLoop();
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Runs tasks and watches until Quit. Called once, on the thread that is to be the sequence.
  void Run();
  // Makes Run return after the task at hand; tasks that are queued then are not run. Called on any
  // thread, also before Run.
  void Quit();

  void PostTask(Task task) override;
  void PostDelayedTask(Task task, uint64_t delay_ns) override;
  void AddReadableWatch(int fd, Task task) override;
  void RemoveReadableWatch(int fd) override;
  // Also true on every thread before Run and after it, as nothing runs tasks then.
  bool RunsTasksOnCurrentThread() const override;

 private:
  // Runs due tasks, then ready descriptors, in turn: the loop of Run.
  void RunUntilQuit();
  // Makes epoll_wait return.
  void Wake();
  // Moves what is due to `out` and returns how long epoll may sleep, in ms (-1: until woken).
  int TakeDueTasks(std::vector<Task>& out);
  // Waits up to `timeout_ms` for descriptors and runs the tasks of those that are ready.
  void RunReadyWatches(int timeout_ms);

  int epoll_fd_;  // waits for wake_fd_ and all watched descriptors
  int wake_fd_;   // an eventfd; readable once Wake was called
  // Shared, so that a task outlives its own removal while it runs.
  std::map<int, std::shared_ptr<Task>> watches_;  // only on the sequence

  mutable Mutex mutex_;
  std::vector<Task> tasks_ NT_GUARDED_BY(mutex_);
  std::multimap<uint64_t, Task> delayed_tasks_ NT_GUARDED_BY(mutex_);  // by CLOCK_MONOTONIC ns
  bool quit_ NT_GUARDED_BY(mutex_) = false;
  std::thread::id thread_ NT_GUARDED_BY(mutex_);  // in Run; else none
};

}  // namespace neurontrace
