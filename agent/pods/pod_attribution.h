// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "agent/pods/pod_resolver.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// Looks every few seconds which pods the workers of this node are of, beside the agent's sequence:
// only the lists of who is there, and of what is new, come to that. Lives on the agent's sequence.
class PodAttribution {
 public:
  static constexpr uint64_t kLookNs = 3'000'000'000;

  struct Hooks {
    std::function<std::vector<PodProcess>()> processes;  // that are workers here
    std::function<void(const PodResolver::Change&)> tell;
  };

  // All outlive it. `looker` is used on `io` alone, and only while this is there or until the task
  // that is under way there has ended.
  PodAttribution(PodResolver& looker, TaskRunner& io, TaskRunner& runner, const Clock& clock,
                 Hooks hooks);
  ~PodAttribution();
  PodAttribution(const PodAttribution&) = delete;
  PodAttribution& operator=(const PodAttribution&) = delete;

  void Start();

 private:
  void Look();
  void LookLater();

  PodResolver& looker_;
  TaskRunner& io_;
  TaskRunner& runner_;
  const Clock& clock_;
  const Hooks hooks_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
