// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"

namespace neurontrace {

// Parameters of FitPair; the defaults suit two hosts that are probed every few seconds. Hosts use
// it for each stretch between two cuts (host_fit.h), devices for each part (device/device_fit.h).
struct PairFitParameters {
  PairParameters pair;
  // Most clocks are much calmer than the limits. The estimate, but not the bounds, assumes that
  // this one wanders at most this many times as much as it did overall. That halves the error, and
  // reduces it to a third where one direction provides no evidence for a while.
  double calm_factor = 2;
  // Distance in seconds of the times at which both passes are combined.
  double grid_s = 2;
  // How far a line between two knots may be from the estimate. Bounds grow by the actual distance.
  double line_tolerance_ns = 100;
  // How far, in seconds, the knots extend beyond the first and last constraint, with growing
  // bounds.
  double reach_s = 1'024;
  // Limits of x that the knots do not exceed.
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = UINT64_MAX;
};

// The result of FitPair.
struct PairFit {
  struct Contradiction {
    size_t constraint = 0;  // its index
    double amount_ns = 0;   // how far it was beyond everything else, signed
    bool likely = false;    // only its likely sides were rejected
  };

  std::vector<ClockKnot> knots;
  std::vector<Contradiction> contradictions;  // sorted by constraint
  // Grid times at which the constraints before and after do not agree: the bounds include both.
  std::vector<uint64_t> torn_ns;
  Interval rate;  // of y - x after the last constraint, ns/s
};

// Fits the curve of one smooth clock by another from all of its constraints. They must be in
// ascending order of x; several may have the same x. Each time uses the constraints before and
// after it: a forward and a backward pass of the set-membership filter are combined. Without
// constraints there are no knots. Takes time linear in their number. Pure.
PairFit FitPair(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters);

}  // namespace neurontrace
