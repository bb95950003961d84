// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/align/clock_map.h"

namespace neurontrace {

// A stretch of the reference, both ends included.
struct ReferenceWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = ~uint64_t{0};
};

// How well a clock is known from one reference time to another; kNoBound: not at all.
struct ClockBound {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t bound_ns = 0;
  friend bool operator==(const ClockBound&, const ClockBound&) = default;
};

// The bounds of a map everywhere in a window, in order and without a gap. Pure.
std::vector<ClockBound> BoundsIn(const ClockMap& map, const ReferenceWindow& window);

}  // namespace neurontrace
