// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/align/clock_map.h"

namespace neurontrace {

// How a clock's bound or correction runs over a stretch of time, as a counter shows it.
struct ClockPoint {
  static constexpr int64_t kUnknown = -1;  // a bound that is not known
  uint64_t at_ns = 0;
  int64_t value = 0;
  friend bool operator==(const ClockPoint&, const ClockPoint&) = default;
};

// The stretch that is shown, in reference time or, if `is_raw`, in the clock's own.
struct ClockStretch {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool is_raw = false;
};

// A point where each piece of the map begins. Of a map with more than `points_max` pieces in the
// stretch, each point stands for several, and for the worst of them. Pure; by time.
std::vector<ClockPoint> BoundPoints(const ClockMap& map, const ClockStretch& stretch,
                                    size_t points_max);

// What the map adds: likewise, with a point at the end. Where a point stands for several pieces, it
// is followed by the one that is furthest from it.
std::vector<ClockPoint> CorrectionPoints(const ClockMap& map, const ClockStretch& stretch,
                                         size_t points_max);

}  // namespace neurontrace
