// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tests/clock_sim/host_scenario.h"

namespace neurontrace {

// Hosts that meet at barriers, and whose probes take unequal ways.
struct BarrierScenario {
  std::string_view name;
  std::string_view words;
  HostScenario hosts;
  double barriers_per_s = 50;
  double straggler_ns = 1e6;  // mean by which a member comes late
  // From the last entry to any exit.
  double latency_least_ns = 12'000;
  double latency_jitter_ns = 4'000;
  double missing_chance = 0;  // of each member, that nothing is known of it
  // Once a run one member's sequence numbers are off by one for ten barriers.
  bool mislabels = false;
};

std::span<const BarrierScenario> BarrierScenarios();

// One instance of a barrier, as its members' events tell.
struct Barrier {
  struct Member {
    uint32_t host = 0;
    uint64_t enter_raw_ns = 0;
    uint64_t exit_raw_ns = 0;
  };
  uint64_t sequence = 0;
  std::vector<Member> members;
  bool mislabelled = false;  // not for a fit to read: what the events say is not true of it
};

std::vector<Barrier> PlayBarriers(const BarrierScenario& scenario, std::span<const Host> hosts,
                                  uint64_t seed);

}  // namespace neurontrace
