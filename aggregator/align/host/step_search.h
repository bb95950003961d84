// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/pair_clock.h"
#include "aggregator/align/host/host_exchange.h"

namespace neurontrace {

// Parameters of FindSteps. `horizon_s` is in seconds of raw; the sides of a horizon are those of
// both directions.
struct StepSearchParameters {
  PairParameters pair;
  // A side that contradicts belongs to a clock that has stepped if this many in the same direction
  // do among those of the next seconds, or the next sides if that is more. Otherwise the side is
  // wrong.
  size_t contradictions = 4;
  double horizon_s = 4;
  size_t horizon_sides = 48;
  size_t horizon_sides_max = 512;
};

// The clock stepped between two of the sides; those in between belong to neither clock. Indices are
// into the sides that FindSteps received.
struct ClockStep {
  size_t last_before = 0;  // last side that cannot be of the clock after the step
  size_t first_after = 0;  // first side that cannot be of the clock before the step
  double amount_ns = 0;    // by which y - x increased
};

// Passes once through the sides (ascending in x) of a stretch without a reported step and finds the
// steps that happened nevertheless. It finds those larger than what is likely leaves open, which is
// much less than what is possible does. On its way it learns the shift of each later route, as the
// clock itself continues, and it rejects exchanges that contradict alone. `exchanges` and `routes`
// are those of the sides; it sets is_rejected, shift_ns and shift_is_known in them. Keeps no state;
// any thread.
std::vector<ClockStep> FindSteps(std::span<const HostSide> sides,
                                 const StepSearchParameters& parameters,
                                 std::vector<HostExchange>& exchanges,
                                 std::vector<ProbeRoute>& routes);

}  // namespace neurontrace
