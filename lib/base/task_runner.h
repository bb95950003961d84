// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace neurontrace {

// A sequence on which tasks run one after the other, so that what lives on it needs no lock.
// Abstract so tests run tasks when they like and advance time instead of waiting.
//
// PostTask and PostDelayedTask may be called from any thread; the file descriptor calls only from
// the sequence itself. Tasks posted from one thread run in the order they were posted. After Quit
// nothing runs any more.
class TaskRunner {
 public:
  using Task = std::function<void()>;
  virtual ~TaskRunner() = default;

  virtual void PostTask(Task task) = 0;
  virtual void PostDelayedTask(Task task, uint64_t delay_ns) = 0;

  // Runs `task` whenever `fd` is readable or has hung up, until removed. The descriptor stays the
  // caller's.
  virtual void AddReadableWatch(int fd, Task task) = 0;
  virtual void RemoveReadableWatch(int fd) = 0;

  virtual bool RunsTasksOnCurrentThread() const = 0;
};

}  // namespace neurontrace
