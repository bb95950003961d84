// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <string>

#include "agent/control/control_session.h"
#include "agent/stacks/stack_sampler.h"
#include "agent/upload/artifact_uploader.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/worker_stacks.h"

namespace neurontrace {

// Reads the stacks of workers for the aggregator: reports each worker's outcome, and hands over
// what the program printed as an artifact of the capture. A file that the aggregator does not store
// is logged and counted. On the agent's sequence.
class AgentStacks final : private StacksSink {
 public:
  // All references outlive this; the registry owns the metrics. `program` as in StackSampler.
  AgentStacks(const std::string& program, ControlSession& control, ArtifactUploader& uploader,
              TaskRunner& runner, const Clock& clock, prometheus::Registry& registry,
              const std::string& instance_id);

  // Reads the workers of an order. A worker that the control session does not know has ended.
  void Collect(const StacksOrder& order);

 private:
  // StacksSink
  void OnStacks(const StacksReading& reading) override;
  void OnUploaded(const ArtifactSink::Outcome& outcome);

  ControlSession& control_;
  ArtifactUploader& uploader_;
  const Clock& clock_;
  prometheus::Counter& workers_;
  prometheus::Counter& taken_;
  prometheus::Counter& refused_;
  prometheus::Counter& files_lost_;
  StackSampler sampler_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
