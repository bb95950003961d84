// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

// What remains open at one time: offsets in ns from the fit's origin. A plain value.
struct StripPoint {
  uint64_t x_ns = 0;
  Interval possible;
  Interval likely;
  double estimate = 0;  // used as far as it is likely and possible
};

// Returns knots with lines between them that follow the estimates to within `tolerance_ns`. Their
// bounds hold for the whole strip, also between the points, where the clock may sag by `limits`. y
// rises by 0 to 2 times x from one knot to the next, whatever the estimates are.
//
// Requires points in strictly ascending order of x. The choice of knots is the swinging door
// algorithm for piecewise linear approximation. It is the last step of FitPair (pair_fit.h). Pure.
std::vector<ClockKnot> KnotsOf(std::span<const StripPoint> strip, const PairOrigin& origin,
                               const WanderLimits& limits, double tolerance_ns);

}  // namespace neurontrace
