// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

// What a model says of one time x.
struct ClockReading {
  ClockEstimate estimate;
  // The segment it lies in; between two: the one before.
  size_t segment = 0;
  // Between two segments, where the clock may have been in either: the bound includes both.
  bool is_ambiguous = false;
  friend bool operator==(const ClockReading&, const ClockReading&) = default;
};

// Beyond a segment's knots its outermost line continues, and the bound grows by so much of the
// distance: two clocks of 100 ppm each.
inline constexpr double kUnknownRate = 200e-6;
// The bound of a model without a segment, and the largest there is.
inline constexpr uint64_t kNoBound = UINT64_MAX;

// A model without a segment says that y is x, without a bound. Between two segments each says what
// y would be, and what it says is believed as far as it lies between the two in y as well.
ClockReading EvaluateClock(const ClockModel& model, uint64_t x_ns);

// What one segment says, also of times beyond its knots.
ClockEstimate EvaluateSegment(const ClockSegment& segment, uint64_t x_ns);

}  // namespace neurontrace
