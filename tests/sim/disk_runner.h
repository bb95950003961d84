// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/weak_tasks.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

// The sequence on which a simulated process waits for its disk: one thing after the other, each
// taking its time. What is not done when the process ends never is.
class DiskRunner final : public TaskRunner {
 public:
  // `operation_ns` may change while it runs, and outlives it.
  DiskRunner(SimWorld& world, const uint64_t& operation_ns)
      : world_(world), operation_ns_(operation_ns) {}

  void PostTask(Task task) override { PostDelayedTask(std::move(task), 0); }
  void PostDelayedTask(Task task, uint64_t delay_ns) override {
    const uint64_t now_ns = world_.clock.MonotonicNs();
    busy_until_ns_ = std::max(busy_until_ns_, now_ns + delay_ns) + operation_ns_;
    world_.runner.PostDelayedTask(weak_tasks_.Wrap(std::move(task)), busy_until_ns_ - now_ns);
  }
  void AddReadableWatch(int, Task) override {}
  void RemoveReadableWatch(int) override {}
  bool RunsTasksOnCurrentThread() const override { return true; }

 private:
  SimWorld& world_;
  const uint64_t& operation_ns_;
  uint64_t busy_until_ns_ = 0;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
