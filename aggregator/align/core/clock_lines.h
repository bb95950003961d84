// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_model.h"

namespace neurontrace {

// A straight piece of one clock by another, from x_begin_ns to x_end_ns. Maps consist of such
// lines. Host models become maps by way of lines because the lines of several snapshots, each good
// in its own part, can be merged before the map is made (utc/realtime_map.h). A plain value; the
// functions below are pure.
struct ClockLine {
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;  // greater than x_begin_ns
  uint64_t y_begin_ns = 0;
  uint64_t y_end_ns = 0;
  uint64_t bound_ns = 0;  // of y on the whole line; kNoBound: unknown
  friend bool operator==(const ClockLine&, const ClockLine&) = default;

  // Returns y on the line or its extension, rounded down.
  uint64_t At(uint64_t x_ns) const;
};

// Returns the model as lines without gaps, in ascending order of x, from one hour before its first
// knot to one hour after its last. A model without segments has no lines.
std::vector<ClockLine> LinesOf(const ClockModel& model);

// Merges two ascending lists; `second` may begin before `first` ends. Where they overlap, x may be
// on either: the lines there are halfway between both, with bounds that include both.
std::vector<ClockLine> UnionOf(std::span<const ClockLine> first, std::span<const ClockLine> second);

// Returns the map along ascending lines. Where they would run backwards the map stands still, and
// its bound includes the error of that. Without lines it is the identity. Lines with x_begin_ns not
// less than x_end_ns are skipped.
ClockMap MapAlong(std::span<const ClockLine> lines);

// Returns the map from a model's x to its y. It is MapAlong(LinesOf(model)).
ClockMap MapOf(const ClockModel& model);

}  // namespace neurontrace
