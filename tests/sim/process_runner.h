// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>

#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// The sequence of one simulated process, on the world's: what it has posted is forgotten when it
// ends, as by kill -9.
class ProcessRunner final : public TaskRunner {
 public:
  explicit ProcessRunner(TaskRunner& world) : world_(world) {}

  void PostTask(Task task) override { world_.PostTask(Guard(std::move(task))); }
  void PostDelayedTask(Task task, uint64_t delay_ns) override {
    world_.PostDelayedTask(Guard(std::move(task)), delay_ns);
  }
  void AddReadableWatch(int, Task) override {}
  void RemoveReadableWatch(int) override {}
  bool RunsTasksOnCurrentThread() const override { return true; }

  // Nothing posted so far or from now on runs.
  void Kill() { weak_tasks_.reset(); }

 private:
  Task Guard(Task task) const {
    return weak_tasks_ ? Task(weak_tasks_->Wrap(std::move(task))) : Task([] {});
  }

  TaskRunner& world_;
  std::optional<WeakTasks> weak_tasks_{std::in_place};
};

}  // namespace neurontrace
