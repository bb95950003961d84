// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Limits of messages about the ranks of one job: disputed ranks and claimants of each that are
// named, other job keys of one communicator, and different world sizes. Further ones are counted.
namespace neurontrace::limits {

inline constexpr uint32_t kRankDisputesNamedMax = 32;
inline constexpr uint32_t kRankClaimantsNamedMax = 16;
inline constexpr uint32_t kJobNamesMax = 16;
inline constexpr uint32_t kWorldSizesNamedMax = 8;

}  // namespace neurontrace::limits
