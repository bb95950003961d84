// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/clock_model.h"

// What the causal pass knows of each clock beforehand: how far its model can be off, and how fast
// that can change.
namespace neurontrace {

// One segment of a clock's model. What follows a break is another clock to the pass, because its
// error has nothing to do with the one before.
struct CausalClock {
  std::string name;  // in findings
  std::vector<ClockKnot> knots;
};

// One for each segment of the model, in their order.
std::vector<CausalClock> CausalClocksOf(std::string_view name, const ClockModel& model);

// What a model says of the time x, as a stamp of its segment's clock, of which the first segment's
// is `first_clock`. nullopt between two segments, where it is not known which of them holds.
std::optional<CausalStamp> CausalStampOf(const ClockModel& model, uint32_t first_clock,
                                         uint64_t x_ns);

// Reference time in pieces of equal length. Knots stand at the ends of the pieces: one more than
// there are pieces.
struct CausalGrid {
  uint64_t begin_ns = 0;
  uint64_t epoch_ns = 1;
  size_t epochs = 0;

  size_t knots() const { return epochs + 1; }
  uint64_t KnotNs(size_t knot) const { return begin_ns + knot * epoch_ns; }
  // Of a time before the grid the first, of one behind it the last.
  size_t EpochOf(uint64_t reference_ns) const;
  size_t NearestKnot(uint64_t reference_ns) const;
};

// The error r of a model (truth - model) at the knots of a grid: |r| is at most Bound, and between
// two knots it changes by at most Slope. All in ns.
class CausalLimits {
 public:
  CausalLimits(const CausalGrid& grid, size_t clocks);

  size_t clocks() const { return clocks_; }
  size_t knots() const { return bound_.size() / clocks_; }
  int64_t& Bound(size_t knot, size_t clock) { return bound_[knot * clocks_ + clock]; }
  int64_t Bound(size_t knot, size_t clock) const { return bound_[knot * clocks_ + clock]; }
  int64_t& Slope(size_t epoch, size_t clock) { return slope_[epoch * clocks_ + clock]; }
  int64_t Slope(size_t epoch, size_t clock) const { return slope_[epoch * clocks_ + clock]; }

 private:
  size_t clocks_;
  std::vector<int64_t> bound_;
  std::vector<int64_t> slope_;
};

struct CausalLimitsPair {
  CausalLimits hard;    // from ClockKnot::bound_ns
  CausalLimits likely;  // from ClockKnot::likely_bound_ns; nowhere above hard
};

// How fast a model's error can change follows from the model itself and the wander that it was made
// with, and takes no further assumption. Over a stretch T the mean rate of the clock is that of the
// model give or take (bound at its begin + bound at its end) / T, and at any moment of it the rate
// is the mean give or take wander * T / 4 in the middle; T is chosen so that the sum is least.
// Wherever the model itself is off that mean, by following evidence that jumped for example, its
// error changes by so much more.
// `wander_ppb_per_s`: as in the model's parameters. No rate is ever beyond `rate_max_ppb`.
CausalLimitsPair LimitsOf(const std::vector<CausalClock>& clocks, const CausalGrid& grid,
                          uint64_t wander_ppb_per_s, uint64_t rate_max_ppb);

// Of two knots that enclose reference_ns the larger bound; of the first or last knot beyond them.
uint64_t BoundAt(const std::vector<ClockKnot>& knots, uint64_t reference_ns);

}  // namespace neurontrace
