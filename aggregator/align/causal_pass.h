// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/causal_clock.h"
#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_correction.h"
#include "aggregator/align/causal_report.h"

namespace neurontrace {

// Equal versions, parameters and arguments give equal results, bit for bit.
inline constexpr uint32_t kCausalAlgorithmVersion = 1;

struct CausalParameters {
  // By CausalClass. Only once it is known of a runtime that its collectives begin and end when the
  // events say, and which belong together, may these move clocks: kCheck until then.
  std::array<CausalMode, kCausalClassCount> modes = {CausalMode::kCheck, CausalMode::kCheck,
                                                     CausalMode::kCheck, CausalMode::kCheck,
                                                     CausalMode::kCheck, CausalMode::kCheck};
  // Shifts bend at its multiples. Shorter: bounds are tighter where constraints are frequent, and
  // everything costs more. Made longer where clocks times epochs are too many.
  uint64_t epoch_ns = 1'000'000'000;
  // As the models of the clocks assume: how fast a rate can change, and what it can be at most.
  uint64_t wander_ppb_per_s = 50;
  uint64_t rate_max_ppb = 200'000;
};

struct CausalResult {
  CausalCorrections corrections;  // empty: nothing is moved
  std::vector<bool> rejected;     // by instance; empty as the corrections
  CausalReport report;
};

// Compares the order of causes and effects on different clocks with what it must be, and shifts
// clocks, within their bounds and never single events, so that it is. Pure: the same arguments give
// the same result to the bit.
//
// INVALID_ARGUMENT for a clock without knots or with knots that do not ascend, a stamp of a clock
// that there is none of, and an epoch of no length.
absl::StatusOr<CausalResult> RunCausalPass(const std::vector<CausalClock>& clocks,
                                           const CausalInstances& instances,
                                           const CausalParameters& parameters);

absl::Status ValidateCausalPass(const std::vector<CausalClock>& clocks,
                                const CausalInstances& instances,
                                const CausalParameters& parameters);

}  // namespace neurontrace
