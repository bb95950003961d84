// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/align/causal_clock.h"
#include "aggregator/align/causal_system.h"

namespace neurontrace {

// One difference on the way around a cycle: r_to - r_from is at most weight_ns.
struct CausalStep {
  enum class Kind : uint8_t {
    kBound,       // of a clock against the reference, which has no index
    kSlope,       // of one clock between two knots
    kConstraint,  // of an instance
  };
  static constexpr uint32_t kReference = UINT32_MAX;
  Kind kind = Kind::kBound;
  uint32_t from = kReference;  // clocks
  uint32_t to = kReference;
  uint32_t knot = 0;      // of `to`
  uint32_t instance = 0;  // of a constraint
  int64_t weight_ns = 0;
};

// Differences that cannot all be true: going round, a clock would be ahead of itself.
struct CausalCycle {
  std::vector<CausalStep> steps;
  int64_t amount_ns = 0;  // by how much, at least: above 0
};

// For every clock and knot the least and the greatest error that all limits and constraints allow,
// which are the shortest paths from and to the reference. In whole ns.
//
// Both `high` and `low`, each as a whole, satisfy every difference, and so does everything between
// them that mixes the two in equal parts: the middle (low + high) / 2, and because all weights are
// whole also its floor.
class CausalSolver {
 public:
  // All arguments outlive the solver.
  CausalSolver(const CausalSystem& system, const CausalLimits& limits);

  // Without conflict: empty, and low and high are as above. Else some of the cycles, at most
  // limits::kCausalConflictsPerRoundMax and each at a knot of its own; low and high are then of no
  // use until limits or system have changed and Solve is called again.
  std::vector<CausalCycle> Solve();

  int64_t Low(size_t knot, size_t clock) const { return low_.value[knot * clocks_ + clock]; }
  int64_t High(size_t knot, size_t clock) const { return high_.value[knot * clocks_ + clock]; }
  int64_t Middle(size_t knot, size_t clock) const {
    return (Low(knot, clock) + High(knot, clock)) >> 1;  // rounds down
  }

 private:
  // Who a value comes from: the reference, the same clock at the knot before or after, or a term.
  struct Side {
    std::vector<int64_t> value;
    std::vector<uint32_t> parent;
  };

  void Reset();
  bool RelaxKnot(size_t knot, bool backwards);
  bool RelaxConstraint(const CausalCell& cell, size_t constraint, size_t knot, uint32_t which);
  void LowerHigh(size_t knot, uint32_t clock, int64_t value, uint32_t parent);
  void RaiseLow(size_t knot, uint32_t clock, int64_t value, uint32_t parent);
  void Spread(size_t from_knot, size_t to_knot);
  void VisitKnot(size_t knot);
  void Fail(size_t knot, uint32_t clock);

  std::optional<CausalStep> StepTo(bool high, size_t knot, uint32_t clock) const;
  // Follows the parents of a value to the reference, or around a cycle, of which it says true.
  bool Walk(bool high, size_t knot, uint32_t clock, std::vector<CausalStep>& steps) const;
  CausalCycle CycleThrough(size_t knot, uint32_t clock) const;
  std::optional<CausalCycle> LoopAt(size_t knot) const;
  void FindLoops();

  const CausalSystem& system_;
  const CausalLimits& limits_;
  const size_t clocks_;
  const size_t knots_;
  Side high_;
  Side low_;
  // By knot:
  std::vector<bool> active_;  // something changed there since it was visited
  std::vector<bool> worked_;  // it was visited in this round
  std::vector<bool> failed_;  // a conflict is there: nothing more is done with it
  std::vector<CausalCycle> cycles_;
  std::optional<uint32_t> crossed_;  // clock, at the knot being relaxed
};

}  // namespace neurontrace
