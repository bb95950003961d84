// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/align/causal_clock.h"
#include "aggregator/align/causal_constraint.h"

// The constraints of a pass, reduced to what matters: differences between the errors r of clocks at
// the knots of a grid. "Cause a on clock i precedes effect b on clock j" is r_i(a) - r_j(b) <= b -
// a.
namespace neurontrace {

enum class CausalPurpose {
  // What truth satisfies: weights are widened by all that the errors can change between a stamp and
  // the knot next to it. Bounds come from it.
  kBounds,
  // What a curve has to satisfy at both knots around, so that every point of it between them does:
  // narrowed by what its points can differ, and by the rounding of stamps. Estimates come from it.
  kCurves,
};

// The constraints of one piece of time.
//   r_cause + cause_ns <= r_effect + effect_ns    for each cause and each effect of one constraint
// A clock stands at most once among the causes of a constraint and once among its effects, as only
// the latest cause and the earliest effect of a clock matter.
struct CausalCell {
  struct Constraint {
    uint32_t cause_begin = 0;
    uint32_t effect_begin = 0;  // both end where the next one's begin
    uint32_t instance = 0;      // index among the CausalInstances
  };
  // Where a clock's stamp stands, relative to the cell's origin.
  struct Term {
    uint32_t clock = 0;
    int64_t time_ns = 0;
  };
  std::vector<Constraint> constraints;  // and one more, which ends the last
  std::vector<Term> causes;
  std::vector<Term> effects;

  size_t size() const { return constraints.empty() ? 0 : constraints.size() - 1; }
};

// Which instances take part, and how much more than they say is asked of them.
struct CausalSelection {
  std::vector<bool> taken;          // by instance
  std::vector<uint32_t> margin_ns;  // by instance; empty: none. For kCurves
};

// Costs O(1) a stamp to make. Of flows, and of collectives among few clocks, it keeps the least
// weight of each ordered pair of clocks in a cell; of others one node an instance.
class CausalSystem {
 public:
  // All arguments but the purpose outlive the system.
  CausalSystem(const CausalInstances& instances, const CausalSelection& selection,
               const CausalLimits& limits, const CausalGrid& grid, CausalPurpose purpose);

  size_t clocks() const { return limits_.clocks(); }
  size_t knots() const { return grid_.knots(); }
  // The cells that hold at a knot: one, or those to its left and right.
  size_t CellsAt(size_t knot) const;
  size_t CellIndex(size_t knot, size_t which) const;
  const CausalCell& Cell(size_t index) const { return cells_[index]; }
  // Anew, after the selection has changed.
  void Rebuild(size_t cell);
  void RebuildOf(uint32_t instance) { Rebuild(CellOf(instance)); }

 private:
  size_t CellOf(uint32_t instance) const;
  // How far r of a clock can have moved between a time and a knot.
  int64_t Movement(uint32_t clock, uint64_t from_ns, uint64_t to_ns) const;
  struct Gathered;  // an instance's terms, one a clock
  void Gather(uint32_t instance, size_t cell, Gathered& into) const;
  void BuildCell(size_t cell, Gathered& gathered);
  uint64_t OriginOf(size_t cell) const;

  const CausalInstances& instances_;
  const CausalSelection& selection_;
  const CausalLimits& limits_;
  const CausalGrid& grid_;
  const CausalPurpose purpose_;
  std::vector<CausalCell> cells_;
  std::vector<uint32_t> order_;       // instances by cell
  std::vector<uint32_t> cell_begin_;  // in order_
};

}  // namespace neurontrace
