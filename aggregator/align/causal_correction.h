// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/align/causal_clock.h"
#include "aggregator/align/clock_model.h"

namespace neurontrace {

// What the causal pass makes of a clock in one epoch of its grid.
struct CausalEpoch {
  // Added to the clock's reference time at the begin of the epoch; up to the next begin it changes
  // linearly.
  int64_t shift_ns = 0;
  // |truth - shifted time| within the epoch, as far as constraints tell; kUnknown: they do not.
  uint64_t bound_ns = kUnknown;
  uint64_t likely_bound_ns = kUnknown;
  static constexpr uint64_t kUnknown = UINT64_MAX;
  friend bool operator==(const CausalEpoch&, const CausalEpoch&) = default;
};

// By how much each clock of a pass is shifted, and how well it is known then. A value.
class CausalCorrections {
 public:
  // Moves nothing.
  CausalCorrections() = default;
  CausalCorrections(const CausalGrid& grid, size_t clocks)
      : grid_(grid), clocks_(clocks), epochs_(grid.knots() * clocks) {}

  // Before the grid the first shift holds, behind it the last.
  int64_t ShiftAt(size_t clock, uint64_t reference_ns) const;
  // Nowhere before an earlier time's, as no shift changes by more than a clock map can follow.
  uint64_t Corrected(size_t clock, uint64_t reference_ns) const;
  bool empty() const { return epochs_.empty(); }
  // Whether it shifts the clock at all, or knows anything of its bound.
  bool Concerns(size_t clock) const;

  const CausalGrid& grid() const { return grid_; }
  // `knot` that ends the last epoch has a shift, and no bounds.
  CausalEpoch& At(size_t knot, size_t clock) { return epochs_[knot * clocks_ + clock]; }
  const CausalEpoch& At(size_t knot, size_t clock) const { return epochs_[knot * clocks_ + clock]; }
  friend bool operator==(const CausalCorrections&, const CausalCorrections&);

 private:
  CausalGrid grid_;
  size_t clocks_ = 0;
  std::vector<CausalEpoch> epochs_;
};

// The model with its curve moved; of its segments the first is clock `first_clock` of the pass, the
// next one the next. A knot stands wherever a shift begins to change in another way; bounds are the
// lesser of what the constraints leave and of what the model's own bound and the shift add up to.
// Times of a map made of it are those of Corrected, give or take 3 ns. A segment that the
// corrections do not concern stays as it is.
ClockModel ApplyCorrections(const ClockModel& model, const CausalCorrections& corrections,
                            size_t first_clock);

}  // namespace neurontrace
