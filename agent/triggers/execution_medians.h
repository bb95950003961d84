// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/triggers/running_median.h"
#include "lib/trace/limits.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {

// The usual duration of executions of one core, for each of its models (a core that runs two has
// two), computed from the starts and stops that its runtime reports. The numbers come from a
// worker: implausible ones are ignored. On one sequence.
class ExecutionMedians {
 public:
  // How many models of one core are distinguished; beyond, the one that ran longest ago is
  // forgotten.
  static constexpr size_t kModelsMax = 8;
  // An execution that does not end is late only after this time, whatever its median is: what has
  // been read of a worker may be this old.
  static constexpr uint64_t kUnendedMinNs = 2'000'000'000;

  // A start or a stop. `device_ns` is of the core's own counter, `host_ns` of its host's realtime.
  // `tracking_id` pairs them.
  struct Mark {
    uint64_t tracking_id = 0;
    std::optional<uint64_t> execution;
    std::optional<uint64_t> device_ns;
    uint64_t model = 0;  // of a start; 0: not known
    uint64_t host_ns = 0;
    uint64_t read_ns = 0;  // when the agent read it, monotonic
  };
  // An execution with its duration. `ns` and `median_ns` are of one clock each.
  struct Taken {
    std::optional<uint64_t> execution;
    uint64_t ns = 0;
    uint64_t median_ns = 0;  // of those before
  };

  // An execution starts. If limits::kTriggerOpenExecutionsMax are open, the oldest is forgotten.
  void Begin(const Mark& mark);
  // Returns the execution that ends, if its start was seen and the median of its model is known.
  // The duration is the device's if both ends have it, else the host's.
  std::optional<Taken> End(const Mark& mark);
  // Returns an execution that has not ended and has taken `times` its median, counted from when its
  // start was read. Each is returned once for each `reporter`, the number of a rule below
  // limits::kTriggerRulesMax.
  std::optional<Taken> FindUnended(uint64_t now_ns, double times, uint32_t reporter);
  // Stops waiting for executions that have begun.
  void ForgetOpen() { open_.clear(); }

 private:
  struct Open {
    Mark begin;
    std::bitset<limits::kTriggerRulesMax> told;  // the tellers that it was returned to
  };
  struct Model {
    uint64_t id = 0;
    // Order of use, for replacing the least recently used.
    uint64_t used = 0;  // counts up
    RunningMedian median;
  };

  // Returns the model's median, after replacing another model if there are kModelsMax.
  RunningMedian& MedianOf(uint64_t model);
  // Returns null for a model that is not known; the pointer is valid until MedianOf.
  const Model* FindModel(uint64_t id) const;

  std::vector<Open> open_;     // in order of arrival; limits::kTriggerOpenExecutionsMax
  std::vector<Model> models_;  // kModelsMax
  uint64_t uses_ = 0;
};

}  // namespace neurontrace
