// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "absl/status/status.h"

// Lists of verdict kinds in rules: names separated by commas. A name may end in `*`, as in
// "slow-host,hang-*". Pure functions.
namespace neurontrace {

// The names of all kinds, in the order of v1::VerdictKind. aggregator/watch tests that they are
// those of the insight rule.
inline constexpr std::array<std::string_view, 13> kVerdictNames = {
    "slow-core",   "slow-host",       "slow-process", "input-stall", "memory-stall",
    "host-code",   "slow-collective", "uneven-role",  "uneven-data", "hang-not-entered",
    "hang-inside", "dead-worker",     "device-error"};

// Fails with INVALID_ARGUMENT, as the end of a sentence that begins with the key, if the list is
// empty or too long, or one of its items matches no kind.
absl::Status CheckVerdictPatterns(std::string_view patterns);

// Returns whether one of the items matches the name of a kind.
bool MatchesVerdict(std::string_view patterns, std::string_view kind);

}  // namespace neurontrace
