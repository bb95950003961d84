// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_correction.h"

namespace neurontrace {

// The widest way in which an instance's stamps contradict it.
struct CausalViolation {
  CausalStamp cause;
  CausalStamp effect;
  int64_t amount_ns = 0;  // cause - effect: above 0
};

// Looks at the stamps as `corrections` shift them, at those of one clock among each other not.
// nullopt: every effect is at its causes or behind them. O(1) a stamp.
std::optional<CausalViolation> ViolationOf(const CausalInstances& instances,
                                           const CausalInstances::Entry& entry,
                                           const CausalCorrections& corrections);

}  // namespace neurontrace
