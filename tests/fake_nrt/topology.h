// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace neurontrace {

// No process has more logical cores than this.
inline constexpr uint32_t kCoresMax = 256;

// The cores of the simulated instance (a trn2.48xlarge: 128 physical ones) as this process sees
// them.
struct Topology {
  uint32_t physical_per_logical = 2;
  uint32_t total = 64;    // logical cores of the instance
  uint32_t first = 0;     // instance-wide index of the process's logical core 0
  uint32_t visible = 64;  // logical cores of the process

  // Reads NEURON_RT_VIRTUAL_CORE_SIZE (or NEURON_LOGICAL_NC_CONFIG), NEURON_RT_VISIBLE_CORES and
  // NEURON_RT_NUM_CORES. Nothing when they are out of range or contradict what the runtime allows
  // (the visible cores have to increase). In a list with holes the simulated physical cores are
  // numbered from the lowest on, as if there were none.
  static std::optional<Topology> FromEnvironment();
};

}  // namespace neurontrace
