// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "tests/fake_nrt/ground_truth.h"
#include "tests/fake_nrt/own_profiler.h"
#include "tests/fake_nrt/sim_core.h"
#include "tests/fake_nrt/sim_options.h"
#include "tests/fake_nrt/sim_schedule.h"
#include "tests/fake_nrt/stop_signal.h"

namespace neurontrace {

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
  OwnProfiler profiler_;
  StopSignal stop_;
  std::vector<std::unique_ptr<SimCore>> cores_;
};

}  // namespace neurontrace
