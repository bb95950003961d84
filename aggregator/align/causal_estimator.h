// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/align/causal_belief.h"
#include "aggregator/align/causal_clock.h"
#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_correction.h"
#include "aggregator/align/causal_report.h"
#include "aggregator/align/causal_solver.h"
#include "aggregator/align/causal_system.h"

namespace neurontrace {

// Works out how far to shift each clock so that a set of instances holds, and leaves out of the set
// what cannot hold together.
//
// The estimate is the middle of what remains possible if all is as the clocks' likely bounds say,
// so that a clock whose model nothing contradicts moves no further than they are wide. Where
// constraints contradict them, they are doubted (causal_belief.h). Constraints that contradict hard
// bounds or each other are rejected, the least trusted of a cycle first, among equals the one that
// asks the most. Hard bounds are never given up: they follow from what was measured, without a word
// about what a collective is.
class CausalEstimator {
 public:
  // All arguments outlive the estimator.
  CausalEstimator(const std::vector<CausalClock>& clocks, const CausalInstances& instances,
                  const CausalGrid& grid, const CausalLimitsPair& limits);

  // `taken`: by instance. Findings and counts go to the report. Empty: so many instances of a class
  // were rejected that it is now marked as distrusted, and nothing else is of use.
  CausalCorrections Run(std::vector<bool> taken, CausalReport& report);
  // Those of `taken` that the latest Run has left out.
  std::vector<bool> Rejected(const std::vector<bool>& taken) const;

 private:
  bool SolveHard(CausalSolver& solver, CausalSystem& system, CausalReport& report);
  bool RejectOneOf(const CausalCycle& cycle, std::vector<uint32_t>& rejected, CausalReport& report);
  void RejectAllAt(const CausalCycle& cycle, std::vector<uint32_t>& rejected, CausalReport& report);
  void Reject(uint32_t instance, const CausalCycle& cycle, CausalReport& report);
  bool Distrust(CausalReport& report) const;

  bool SolveLikely(CausalSystem& system, CausalBeliefs& beliefs, CausalCorrections& into,
                   CausalReport& report);
  void Shift(const CausalSolver& solver, CausalCorrections& into) const;
  // Raises the margin of what the shifted stamps still violate. False: nothing is violated.
  bool TightenViolated(CausalSystem& system, const CausalCorrections& corrections, bool give_up,
                       CausalReport& report);
  void FillBounds(const CausalBeliefs& beliefs, CausalCorrections& corrections) const;
  std::string Describe(uint32_t instance, const CausalCycle& cycle) const;

  const std::vector<CausalClock>& clocks_;
  const CausalInstances& instances_;
  const CausalGrid& grid_;
  const CausalLimitsPair& limits_;
  CausalSelection selection_;
};

}  // namespace neurontrace
