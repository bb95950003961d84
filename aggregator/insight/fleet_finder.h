// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/insight/judge_input.h"

namespace neurontrace {

// The cores of a fleet with the same repeating sequence of models. A plain value.
struct FleetRole {
  std::vector<uint32_t> cores;   // ascending; none of them is refused
  std::vector<uint32_t> models;  // keys of the executions in the sequence, each once, ascending
  uint32_t period = 1;           // executions of a step
  bool has_models = true;        // false: counts of collectives take the place of models
  double step_ns = 0;            // median over its cores
};

// Cores of a job that meet, directly or through others. A plain value.
struct Fleet {
  std::vector<uint32_t> cores;  // ascending, refused ones too
  std::vector<FleetRole> roles;
};

// Returns the fleets by their first core. Refuses cores that cannot be compared: with losses, too
// few executions, without a sequence, with ids that contradict time, or in a job that is not
// in the capture for the most part.
std::vector<Fleet> FindFleets(const JudgeInput& input, RefusalList& refusals);

// Returns the smallest period of the sequence, as decision 0044 defines it, or 0.
uint32_t FindPeriod(std::span<const uint32_t> sequence);

}  // namespace neurontrace
