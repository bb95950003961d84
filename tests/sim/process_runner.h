// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "base/task_runner.h"

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
  void Kill() { alive_.reset(); }

 private:
  Task Guard(Task task) const {
    return [alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
      if (!alive.expired()) task();
    };
  }

  TaskRunner& world_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace neurontrace
