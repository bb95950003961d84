// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aggregator/align/causal_clock.h"
#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_correction.h"
#include "aggregator/align/causal_solver.h"

namespace neurontrace {

// Which of the assumptions behind the clocks' likely bounds are still believed while an estimate is
// made. At first all are, and what constraints contradict goes, clock by clock:
//
// A likely bound assumes that the fastest probe took as long there as back. Where constraints prove
// that wrong of a clock, its own model says little of where within its hard bounds it is. Its
// constraints with other clocks then say more: the fastest instances in both directions leave a
// strip, and the middle of that is where the clock is, if these two took equally long. So the clock
// is placed by them alone; and where that would lie outside of its hard bounds, by both. Where half
// of the clocks that hold together by constraints are doubted, all of them are.
class CausalBeliefs {
 public:
  // All arguments outlive the beliefs. `taken`: by instance.
  CausalBeliefs(const CausalLimitsPair& limits, const CausalGrid& grid,
                const CausalInstances& instances, const std::vector<bool>& taken);

  // For an estimate, and for a likely bound, which nothing is assumed for that has been doubted.
  CausalLimits ForCurves() const;
  CausalLimits ForBounds() const;

  // Doubts the clocks that `hard`, a solution within hard bounds, leaves no room where their likely
  // bounds are.
  void DoubtImpossible(const CausalSolver& hard);
  // Doubts the clocks whose limits are in most of the cycles: one clock that is off is in conflict
  // with many that are not.
  void DoubtMostBlamed(const std::vector<CausalCycle>& cycles);
  void DoubtAll();
  // Clocks that hold together by constraints, and of which none says where they are, are moved
  // together to the middle of where their hard bounds allow them to be. False if a clock is still
  // outside of its hard bounds. Then those by which it was placed are doubted as well, or, where
  // none is left, hard bounds hold again; and an estimate must be made anew.
  bool Settle(CausalCorrections& corrections);

  uint64_t doubted() const;

 private:
  enum class Place : uint8_t { kLikely, kByOthers, kWithinBounds };
  struct Belief {
    Place place = Place::kLikely;
    bool slope = true;
  };
  struct Room {
    int64_t least = INT64_MIN;
    int64_t most = INT64_MAX;
  };

  std::vector<bool> GroupsAdrift() const;
  std::vector<Room> Rooms(const CausalCorrections& corrections) const;
  void DoubtWithMost();

  const CausalLimitsPair& limits_;
  const CausalGrid& grid_;
  std::vector<Belief> beliefs_;     // by clock
  std::vector<uint32_t> group_of_;  // the least clock that a clock holds together with
};

}  // namespace neurontrace
