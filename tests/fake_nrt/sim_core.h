// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "tests/fake_nrt/execution_planner.h"
#include "tests/fake_nrt/ground_truth.h"
#include "tests/fake_nrt/sim_schedule.h"
#include "tests/fake_nrt/stop_signal.h"

namespace neurontrace {

struct SimCoreOptions {
  PlannerOptions planner;
  int64_t end_ns = INT64_MAX;                // no execution begins from this true time on
  uint64_t executions = UINT64_MAX;          // nor after so many
  std::string stall_file;                    // once it is there, an execution stops in its middle
  uint64_t communicator_after = UINT64_MAX;  // executions before join_communicator is called
  std::function<void()> join_communicator;
};

// One logical core at work: emits its executions in real time, each event at about its stamped time
// (up to a millisecond late, in one go), until the options or the stop signal end it.
class SimCore {
 public:
  SimCore(const Schedule& schedule, const WorkloadForms& forms, GroundTruth& truth,
          const StopSignal& stop, const SimCoreOptions& options);

  // Runs on a thread of the core's own.
  void Run();

  // After Run().
  uint64_t emitted() const { return emitted_; }
  uint64_t accepted() const { return accepted_; }
  uint64_t executions() const { return planner_.exec_id(); }

 private:
  // False when the stop signal came.
  bool EmitAll(std::span<const PlannedEvent> events);
  void Emit(const PlannedEvent& event);
  // The execution as far as it is on the device, and nothing more until the stop signal.
  void Stall(std::span<const PlannedEvent> events);

  const Schedule& schedule_;
  const StopSignal& stop_;
  const SimCoreOptions options_;
  ExecutionPlanner planner_;
  TruthWriter truth_;
  uint64_t thread_id_ = 0;
  uint64_t emitted_ = 0;
  uint64_t accepted_ = 0;
};

}  // namespace neurontrace
