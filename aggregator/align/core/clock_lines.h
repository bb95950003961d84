// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_model.h"

namespace neurontrace {

// A clock by another from x_begin to x_end, straight: what maps are made of.
struct ClockLine {
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;  // more than x_begin_ns
  uint64_t y_begin_ns = 0;
  uint64_t y_end_ns = 0;
  uint64_t bound_ns = 0;  // kNoBound: not known
  friend bool operator==(const ClockLine&, const ClockLine&) = default;

  // On the line or its extension, rounded down.
  uint64_t At(uint64_t x_ns) const;
};

// What EvaluateClock says, as lines without gaps in ascending order of x, from an hour before the
// model's first knot to an hour after its last. A model without a segment: none.
std::vector<ClockLine> LinesOf(const ClockModel& model);

// Both lists are in ascending order, and `second` may begin before `first` ends. Where they overlap
// x may be on either: the lines there run between both, and their bounds hold for both.
std::vector<ClockLine> UnionOf(std::span<const ClockLine> first, std::span<const ClockLine> second);

// The map along the lines, which are in ascending order of x. Where they would run backwards the
// map stands still, and its bound says by how much that is wrong. No line: the identity.
ClockMap MapAlong(std::span<const ClockLine> lines);

// From a model's x to its y.
ClockMap MapOf(const ClockModel& model);

}  // namespace neurontrace
