// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

struct PairFitParameters {
  PairParameters pair;
  // Most clocks are much calmer than the limits. The estimate supposes that this one continues as
  // calmly as it did on the whole, times this: it halves the error, and where one direction tells
  // nothing for a while it makes it a third. The bounds do not.
  double calm_factor = 2;
  // How far apart the times are at which both passes are brought together.
  double grid_s = 2;
  // How far a line between two knots may be from the estimate. Bounds grow by as much as it is.
  double line_tolerance_ns = 100;
  // The knots reach so far beyond the first and the last constraint, with bounds that grow.
  double reach_s = 1'024;
  // ... but not beyond these times of x.
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = UINT64_MAX;
};

struct PairFit {
  struct Contradiction {
    size_t constraint = 0;  // its index
    double amount_ns = 0;   // by how much it was beyond what else was known, with its sign
    bool likely = false;    // only its likely sides were left out
  };

  std::vector<ClockKnot> knots;
  std::vector<Contradiction> contradictions;  // by constraint
  // Grid times at which what was before and what comes after did not agree: both are within bounds.
  std::vector<uint64_t> torn_ns;
  Interval rate;  // of y - x after the last constraint, ns/s
};

// The curve of one smooth clock by another from all of its constraints, which must be in ascending
// order of x (several may be at one x), from those before and after each time: a forward and a
// backward pass, and what both leave open. No constraints: no knots.
PairFit FitPair(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters);

}  // namespace neurontrace
