// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

// What is open at one time: offsets from the fit's origin.
struct StripPoint {
  uint64_t x_ns = 0;
  Interval possible;
  Interval likely;
  double estimate = 0;  // as far as it is likely, and possible
};

// Knots whose lines follow the estimates to `tolerance_ns`, and whose bounds hold
// for the whole of the strip between the points too, where the clock may sag as `limits` say. y
// rises by 0 to 2 from one to the next, whatever the estimates.
// The points are in ascending order of x, without two at one.
std::vector<ClockKnot> KnotsOf(std::span<const StripPoint> strip, const PairOrigin& origin,
                               const WanderLimits& limits, double tolerance_ns);

}  // namespace neurontrace
