// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/pair_clock.h"
#include "aggregator/align/host/host_exchange.h"

namespace neurontrace {

struct StepSearchParameters {
  PairParameters pair;
  // A side that contradicts is of a clock that has stepped if so many in the same direction do,
  // among those of the next seconds (or the next sides, if that is longer). Else it is wrong.
  size_t contradictions = 4;
  double horizon_s = 4;
  size_t horizon_sides = 48;
  size_t horizon_sides_max = 512;
};

// Between two of the sides the clock stepped. Those between are of neither.
struct ClockStep {
  size_t last_before = 0;  // index of the last side that cannot be of the clock after it
  size_t first_after = 0;  // index of the first that cannot be of the clock before it
  double amount_ns = 0;    // by which y - x went up
};

// Goes once through the sides (ascending in x) of a stretch in which nobody told of a step, and
// finds the steps that there were all the same: those that are larger than what is likely leaves
// open, which is much less than what is possible does. On its way
//  - it learns the shift of each route that follows another, since the clock itself runs on;
//  - it rejects exchanges that contradict alone.
std::vector<ClockStep> FindSteps(std::span<const HostSide> sides,
                                 const StepSearchParameters& parameters,
                                 std::vector<HostExchange>& exchanges,
                                 std::vector<ProbeRoute>& routes);

}  // namespace neurontrace
