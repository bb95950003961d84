// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace neurontrace {

// A sequence on which tasks run one after the other, so that objects that live on it need no lock.
// Abstract so that tests run tasks when they like and advance time instead of waiting.
//
// PostTask, PostDelayedTask and RunsTasksOnCurrentThread may be called from any thread, the file
// descriptor calls only from the sequence itself. Tasks posted from one thread run in the order
// they were posted. There is no limit on queued tasks: whoever posts for a peer's input limits that
// input. After Quit no task runs any more.
class TaskRunner {
 public:
  using Task = std::function<void()>;
  virtual ~TaskRunner() = default;

  // Queues a task. Never runs it within the call.
  virtual void PostTask(Task task) = 0;
  // Queues a task that becomes due `delay_ns` from now. It cannot be cancelled: a task that may
  // outlive its owner is wrapped by WeakTasks.
  virtual void PostDelayedTask(Task task, uint64_t delay_ns) = 0;

  // Runs `task` whenever `fd` is readable or has hung up, until removed. The descriptor remains the
  // caller's, which removes the watch before closing it.
  virtual void AddReadableWatch(int fd, Task task) = 0;
  virtual void RemoveReadableWatch(int fd) = 0;

  // Returns whether the caller is on the sequence. For assertions.
  virtual bool RunsTasksOnCurrentThread() const = 0;
};

}  // namespace neurontrace
