// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fake_nrt/execution_planner.h"
#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/own_profiler.h"
#include "tests/fake_nrt/sim_options.h"
#include "tests/fake_nrt/sim_schedule.h"
#include "tests/fake_nrt/step_meeting.h"
#include "tests/fake_nrt/stop_signal.h"

namespace neurontrace {

// The file of everything that entered a ring: tab-separated lines under a header line with the
// names of the columns. Written in whole lines, so that a killed process leaves at most one torn
// line at the end. Each thread writes through a TruthWriter of its own.
class GroundTruth {
 public:
  // An empty path: nothing is written. Check ok() before use.
  explicit GroundTruth(const std::string& path);
  ~GroundTruth();
  GroundTruth(const GroundTruth&) = delete;
  GroundTruth& operator=(const GroundTruth&) = delete;

  bool ok() const { return ok_.load(); }
  bool wanted() const { return fd_ >= 0; }
  // Appends whole lines. A write that fails turns ok() false for good.
  void Append(std::string_view lines);

 private:
  int fd_ = -1;
  std::atomic<bool> ok_{true};
};

// The lines of one core, buffered up to 64 KiB or the end of an execution.
class TruthWriter {
 public:
  TruthWriter(GroundTruth& truth, uint32_t rank, uint32_t nc_idx)
      : truth_(truth), rank_(rank), nc_idx_(nc_idx) {}
  ~TruthWriter() { Flush(); }

  void Accepted(const PlannedEvent& event, const fake_nrt_receipt& receipt, uint64_t exec_id);
  void Flush();

 private:
  GroundTruth& truth_;
  const uint32_t rank_;
  const uint32_t nc_idx_;
  std::string lines_;
};

struct SimCoreOptions {
  PlannerOptions planner;
  int64_t end_ns = INT64_MAX;        // no execution begins from this true time on
  uint64_t executions = UINT64_MAX;  // nor after so many
  std::string wait_file;  // once it is there, with a number: waits in this execution's host barrier
  std::string stall_file;                    // once it is there, an execution stops in its middle
  uint64_t communicator_after = UINT64_MAX;  // executions before join_communicator is called
  std::function<void()> join_communicator;
  StepMeeting* meeting = nullptr;  // of all ranks in each step; outlives the core
  int64_t measured_work_ns = 0;    // of processor time in each step; needs a meeting
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
  // The events of a step, with all others where there is a meeting. False when the stop signal
  // came.
  bool Execute(uint64_t step);
  bool ExecuteWithOthers(uint64_t step);
  // Uses the processor, and returns how much later than planned it was done.
  int64_t Work(int64_t planned_end_ns) const;
  // False when the stop signal came.
  bool EmitAll(std::span<const PlannedEvent> events);
  void Emit(const PlannedEvent& event);
  // Emits the events before the first stop of this type, and nothing more until the stop signal.
  void Stall(std::span<const PlannedEvent> events, std::string_view type);
  bool MustWait() const;  // because of the wait file

  const Schedule& schedule_;
  const StopSignal& stop_;
  const SimCoreOptions options_;
  ExecutionPlanner planner_;
  TruthWriter truth_;
  uint64_t thread_id_ = 0;
  int64_t delay_ns_ = 0;  // of the next step, because of all before
  uint64_t emitted_ = 0;
  uint64_t accepted_ = 0;
};

// A worker process of a simulated job: opens the runtime, runs its cores, closes the runtime.
class NrtWorker {
 public:
  explicit NrtWorker(const SimOptions& options);

  // Works until done or until `signal_fd` (a signalfd) has a signal. Returns the exit code: 0, 1
  // when the runtime or the truth file failed, 3 when the runtime saw misuse.
  int Run(int signal_fd);

 private:
  bool OpenRuntime();
  void JoinCommunicator(uint32_t nc_idx) const;
  void BuildCores();
  void RunCores(int signal_fd);
  int Report() const;

  const SimOptions options_;
  Schedule schedule_;
  GroundTruth truth_;
  std::unique_ptr<StepMeeting> meeting_;
  OwnProfiler profiler_;
  StopSignal stop_;
  std::vector<std::unique_ptr<SimCore>> cores_;
};

}  // namespace neurontrace
