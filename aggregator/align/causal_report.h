// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_solver.h"

namespace neurontrace {

enum class CausalMode : uint8_t {
  kOff,
  kCheck,  // violations are counted and reported; nothing is moved
  kApply,  // clocks are moved so that none remains
};

// An instance is violated when one of its effects stands before one of its causes, on another
// clock, by their stamps. Worst amounts are 0 where none is violated.
struct CausalClassReport {
  CausalMode mode = CausalMode::kCheck;
  uint64_t instances = 0;
  uint64_t stamps = 0;
  uint64_t violated_before = 0;
  int64_t worst_before_ns = 0;
  // Of violated_before: by more than the bounds of the two clocks explain. Then an instance has
  // been put together wrongly, or a bound is wrong.
  uint64_t beyond_bounds = 0;
  // With the shifted clocks; among the accepted instances of a class in kApply always 0.
  uint64_t violated_after = 0;
  int64_t worst_after_ns = 0;
  uint64_t rejected = 0;  // contradicted better constraints or bounds, and were left out
  // In kApply, but so many were rejected that the pass only checked it.
  bool distrusted = false;
};

struct CausalFinding {
  CausalClass kind = CausalClass::kBarrier;
  uint64_t reference_ns = 0;
  uint32_t instance = UINT32_MAX;  // UINT32_MAX: the class as a whole
  // Of a rejected instance; instances by index. Its first limits::kCausalCycleStepsKeptMax steps.
  CausalCycle cycle;
  std::string words;
};

struct CausalReport {
  std::array<CausalClassReport, kCausalClassCount> classes;
  uint64_t epoch_ns = 0;
  uint64_t epochs = 0;
  uint64_t rounds = 0;  // of solving
  uint64_t largest_shift_ns = 0;
  std::string largest_shift_clock;
  // Clocks whose likely bounds the constraints contradict: the paths of their probes are not
  // symmetric, and their estimates rest on what no assumption is needed for.
  uint64_t unlikely_clocks = 0;
  std::vector<CausalFinding> findings;  // at most limits::kCausalFindingsMax
  uint64_t findings_omitted = 0;

  const CausalClassReport& operator[](CausalClass kind) const { return classes[Index(kind)]; }
  CausalClassReport& operator[](CausalClass kind) { return classes[Index(kind)]; }
  // A line for people about each class that there are instances of.
  std::vector<std::string> Words() const;
};

}  // namespace neurontrace
