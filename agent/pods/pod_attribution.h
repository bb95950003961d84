// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "agent/pods/pod_resolver.h"
#include "agent/pods/pod_workers.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"

namespace neurontrace {

// Runs PodResolver every few seconds on a thread that may wait for the kubelet. Only the list of
// processes and the changes pass through the agent's sequence. Lives on that sequence. Owned by the
// agent's AgentPods; the tap source receives the changes.
class PodAttribution {
 public:
  // Between the end of one look and the next.
  static constexpr uint64_t kPollNs = 3'000'000'000;

  // All arguments outlive it. `resolver` is used on `io` alone, and not after the task that is
  // running there when this is destroyed.
  PodAttribution(PodResolver& resolver, TaskRunner& io, TaskRunner& runner, const Clock& clock,
                 PodWorkers& workers);
  // A look that is under way reports nothing any more.
  ~PodAttribution();
  PodAttribution(const PodAttribution&) = delete;
  PodAttribution& operator=(const PodAttribution&) = delete;

  // Schedules the first look. To be called once. Nothing is asked before that.
  void Start();

 private:
  // Collects the processes here, resolves them on io_, reports changes here, and schedules the next
  // look.
  void Poll();
  void ScheduleNextPoll();

  PodResolver& resolver_;
  TaskRunner& io_;
  TaskRunner& runner_;
  const Clock& clock_;
  PodWorkers& workers_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
