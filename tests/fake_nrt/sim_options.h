// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/fake_nrt/host_clock.h"
#include "tests/fake_nrt/own_profiler.h"
#include "tests/fake_nrt/workload_mix.h"

namespace neurontrace {

// When the cores of a worker get their global ids.
enum class CommunicatorTime { kNone, kEarly, kLate };
// Which call of the runtime tells them.
enum class CommunicatorCall { kBuild, kInit, kLoad };

// The command line of sim_worker, checked.
struct SimOptions {
  uint64_t seed = 1;
  uint32_t rank_start = 0;
  uint32_t world_size = 0;  // 0: rank_start + cores
  uint32_t cores = 1;
  uint32_t lnc = 2;
  std::string mix_name = "graph";
  WorkloadMix mix;
  int32_t collectives = -1;  // -1: as the mix has them
  double executions_per_second = 10;
  double events_per_second = 0;  // per core; takes the place of executions_per_second
  double duration_s = 0;         // 0: no end
  uint64_t executions = 0;       // 0: no end
  int64_t host_work_us = 0;
  bool does_host_work = false;
  std::string meeting_file;
  int64_t start_at_ns = 0;  // 0: now
  int64_t straggler_rank = -1;
  int64_t straggler_extra_us = 0;
  double straggler_after_s = 0;
  int64_t stall_rank = -1;
  std::string stall_file;
  std::string wait_file;
  HostClock host_clock;  // without an origin: from start_at_ns on
  std::string ground_truth;
  CommunicatorTime communicator = CommunicatorTime::kEarly;
  CommunicatorCall communicator_call = CommunicatorCall::kBuild;
  uint64_t communicator_after = 10;
  bool hardware_after_sync = false;
  bool no_init = false;
  bool no_close = false;
  bool print_ready = false;
  double close_delay_s = 0;
  OwnProfilerOptions profiler;

  // Prints help or what is wrong and exits the process in that case.
  static SimOptions FromCommandLine(int argc, char** argv);

  int64_t period_ns() const { return static_cast<int64_t>(1e9 / executions_per_second); }
};

}  // namespace neurontrace
