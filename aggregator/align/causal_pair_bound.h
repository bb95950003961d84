// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/align/causal_pass.h"

namespace neurontrace {

// Of two stamps, shifted as a pass has found, on two clocks: by how much the second clock's has to
// be raised against the first's, at least and at most, for both to be right. Beyond that their
// order is known.
struct CausalPairBound {
  int64_t least_ns = 0;
  int64_t most_ns = 0;
  friend bool operator==(const CausalPairBound&, const CausalPairBound&) = default;
};

// Each clock against `clock`, about reference_ns. Two bounds against the reference add up to more
// than this wherever constraints connect the clocks: what two clocks have in common is in both.
// Looks at the instances of classes in kApply that the pass has not rejected, within so many epochs
// on either side; further ones tell little more. The first four arguments are those of the pass,
// and what it gave.
//
// INVALID_ARGUMENT as RunCausalPass, and for a clock that there is none of.
inline constexpr uint64_t kCausalPairEpochs = 8;
struct CausalMoment {
  uint32_t clock = 0;
  uint64_t reference_ns = 0;
};
absl::StatusOr<std::vector<CausalPairBound>> CausalPairBounds(
    const std::vector<CausalClock>& clocks, const CausalInstances& instances,
    const CausalParameters& parameters, const CausalResult& result, const CausalMoment& moment);

}  // namespace neurontrace
