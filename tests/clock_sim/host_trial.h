// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/clock_sim/host_score.h"

namespace neurontrace {

// Plays one run of a scenario, and lets each method map its stamps. One score a method, in the
// order of `methods`. Equal arguments give equal scores but for the processor times.
std::vector<HostScore> RunHostTrial(const HostScenario& scenario,
                                    std::span<const HostMethod> methods, uint64_t seed);

}  // namespace neurontrace
