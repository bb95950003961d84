// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

// A model's estimate for one time x. Used by the making of maps (clock_lines.h), by the judgement
// of UTC and by reports, which read a model at times of their own.
struct ClockReading {
  ClockEstimate estimate;
  // The segment that contains x; between two, the one before.
  size_t segment = 0;
  // x is between two segments and the clock may have been in either: the bound includes both.
  bool is_ambiguous = false;
  friend bool operator==(const ClockReading&, const ClockReading&) = default;
};

// Beyond a segment's knots its outermost line continues, and the bound grows by this share of the
// distance: two clocks of 100 ppm each.
inline constexpr double kUnknownRate = 200e-6;
// The bound of a model without a segment, and the largest possible one.
inline constexpr uint64_t kNoBound = UINT64_MAX;

// Returns the model's estimate for x. Without a segment y is x, without a bound. Between two
// segments each gives an estimate, which counts as far as it is between the two in y as well. Pure.
ClockReading EvaluateClock(const ClockModel& model, uint64_t x_ns);

// Returns the estimate of one segment, also for times beyond its knots. The segment has knots.
ClockEstimate EvaluateSegment(const ClockSegment& segment, uint64_t x_ns);

}  // namespace neurontrace
