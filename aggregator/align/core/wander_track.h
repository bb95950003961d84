// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

// One side of a constraint: at `seconds` the offset is at most, or at least, `offset`. In the
// numbers of one fit (PairOrigin): seconds since its origin, ns of offset.
struct TrackSide {
  double seconds = 0;
  double offset = 0;
  uint32_t constraint = 0;  // for the caller: whose side it is
  bool is_most = false;
};

// Returns the sides, in ascending order of time, without those that a neighbour within 20 ms
// implies by the limits of the rate alone. Probes come in bursts, and most of a burst adds nothing.
// `rate` has the limits in ns/s; the larger magnitude counts for both signs.
std::vector<TrackSide> DropImplied(std::span<const TrackSide> sides, Interval rate);

// A rejected side. The amount is negative for an upper limit and positive for a lower one.
struct TrackContradiction {
  size_t constraint = 0;
  double amount_ns = 0;  // how far it was beyond what was possible
};

// Records rejected constraints. Once one side is rejected the whole constraint is no longer used.
// The passes of one fit share it, so that a pass never uses what an earlier one rejected. One
// thread at a time.
class TrackVerdicts {
 public:
  explicit TrackVerdicts(size_t constraints) : is_out_(constraints) {}

  // `constraint` is an index below the count that the constructor received.
  bool IsOut(size_t constraint) const { return is_out_[constraint]; }
  void Reject(size_t constraint, double amount_ns) {
    is_out_[constraint] = true;
    found_.push_back({constraint, amount_ns});
  }
  // Returns the rejected sides in the order of rejection.
  const std::vector<TrackContradiction>& found() const { return found_; }

 private:
  std::vector<bool> is_out_;
  std::vector<TrackContradiction> found_;
};

// The possible offsets at one grid time by all sides, before and after it. Offsets are in ns from
// the fit's origin.
struct TrackPoint {
  Interval offset;
  bool is_torn = false;  // the two do not agree: the interval includes both
};
// The result of SmoothTrack.
struct TrackResult {
  std::vector<TrackPoint> points;
  Interval rate;         // after the last side, from the sides before it
  size_t stretched = 0;  // sides that contradicted within the tolerance
};
// Runs a filter forwards and backwards over the sides and intersects both at each grid time. Sides
// and grid are in ascending order, and there is at least one side. `begin` is the set before
// anything is known. A side that contradicts by up to `tolerance` widens what is possible; any
// other is rejected. Takes time linear in the sides and the grid.
TrackResult SmoothTrack(std::span<const TrackSide> sides, std::span<const double> grid,
                        const WanderPolygon& begin, const WanderLimits& limits, double tolerance,
                        TrackVerdicts& verdicts);

}  // namespace neurontrace
