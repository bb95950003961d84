// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

// One side of a constraint: at `seconds` the offset is at most, or at least, `offset`.
struct TrackSide {
  double seconds = 0;
  double offset = 0;
  uint32_t constraint = 0;  // whose side it is, for the caller
  bool is_most = false;
};

// Of the sides, in ascending order of time, those that do not follow from a neighbour within a
// burst (20 ms) by the limits of the rate alone.
std::vector<TrackSide> DropImplied(std::span<const TrackSide> sides, Interval rate);

struct TrackContradiction {
  size_t constraint = 0;
  double amount_ns = 0;  // by how much the side was beyond what was possible
};

// What was left out, which the whole of its constraint is from then on.
class TrackVerdicts {
 public:
  explicit TrackVerdicts(size_t constraints) : is_out_(constraints) {}

  bool IsOut(size_t constraint) const { return is_out_[constraint]; }
  void Reject(size_t constraint, double amount_ns) {
    is_out_[constraint] = true;
    found_.push_back({constraint, amount_ns});
  }
  const std::vector<TrackContradiction>& found() const { return found_; }

 private:
  std::vector<bool> is_out_;
  std::vector<TrackContradiction> found_;
};

// What the offset can be at each of the times of a grid (ascending) by all sides: those before and
// those after it.
struct TrackPoint {
  Interval offset;
  bool is_torn = false;  // those before and those after do not agree: within are both
};
struct TrackResult {
  std::vector<TrackPoint> points;
  Interval rate;         // after the last side, from those before it
  size_t stretched = 0;  // sides that contradicted within the tolerance
};
// `begin` knows nothing but the limits of the rate. A side that contradicts by no more than
// `tolerance` widens what is possible, any other is rejected.
TrackResult SmoothTrack(std::span<const TrackSide> sides, std::span<const double> grid,
                        const WanderPolygon& begin, const WanderLimits& limits, double tolerance,
                        TrackVerdicts& verdicts);

}  // namespace neurontrace
