// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_event.h"

namespace neurontrace {

// What one core does in one execution, in milliseconds. A plain value.
struct FleetWork {
  double gap = 2;
  double io = 0;      // of the gap
  double memory = 0;  // of the gap
  double submit = 0.5;
  double pre = 0.5;
  double device = 40;
  double post = 0.5;
  double transfer = 4;  // the largest of a group counts
  uint64_t model = 0x100;
  uint64_t exec_id_shift = 0;
  bool has_stopped = false;   // makes no further event
  bool stays_inside = false;  // enters the collective, and its stop never comes
};

// Cores that meet in one collective at the end of each execution: all leave it together, so what
// one core does for longer, the others wait. Each instance has a clock of its own, hours from the
// others'. A substitute for a job in tests; deterministic.
class LockStepFleet {
 public:
  // `cores` with `per_process` in a process, and two processes in an instance.
  LockStepFleet(uint32_t cores, uint32_t per_process);

  std::vector<InsightCore> cores;
  // Changes the work of a core in an execution; called for each once, in order.
  std::function<void(uint32_t core, uint32_t execution, FleetWork& work)> plan;
  // Groups of the collective, by core; those with the same number meet. All meet by default.
  std::function<uint64_t(uint32_t core)> group_of = [](uint32_t) { return uint64_t{0}; };
  double noise = 0.004;  // of the device's work, uniform
  uint64_t seed = 1;

  // Makes the next executions, and returns the events of each core in the order of their ends.
  std::vector<std::vector<InsightEvent>> Run(uint32_t executions);
  // The end of a core's last event, by its own clock.
  uint64_t end_ns(uint32_t core) const { return state_[core].clock_ns + state_[core].offset_ns; }

 private:
  struct CoreState {
    uint64_t offset_ns = 0;             // of its clock
    uint64_t clock_ns = 1'000'000'000;  // true time at which its last run ended
    uint64_t post_ns = 0;
    bool has_stopped = false;
  };
  // When a core reached what, in true time.
  struct Reached {
    FleetWork work;
    uint64_t call = 0;
    uint64_t prepare = 0;
    uint64_t run = 0;
    uint64_t enter = 0;
  };

  Reached ReachCollective(uint32_t core);
  void Emit(uint32_t core, const Reached& reached, uint64_t leave,
            std::vector<InsightEvent>& events);
  double Random(uint32_t core) const;

  std::vector<CoreState> state_;
  uint32_t execution_ = 0;
};

}  // namespace neurontrace
