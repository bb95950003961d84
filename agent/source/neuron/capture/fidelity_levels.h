// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/event_filter.h"

// The levels of fidelity: which event classes a capture omits, in one order, to stay within its
// budget. Level 0 omits nothing; each further level omits what the one before does, and more
// (docs/decisions/0020-an-overhead-budget-leaves-out-event-classes.md). Pure functions.
namespace neurontrace {

inline constexpr uint32_t kFidelityLevels = 6;

// Returns the filter of what is still recorded at `level`, of what a capture selects. Values above
// the highest level count as that.
const EventFilter& FilterOfFidelity(uint32_t level);

// Describes what is omitted: "allocation events"; empty for level 0.
std::string_view LeftOutOfFidelity(uint32_t level);

// Returns the levels that make a difference to a capture of `wanted` events on a runtime with these
// types, ascending from 0: each omits a type that the one before has, and none omits all. If the
// runtime's types are not known, the documented ones are assumed.
std::vector<uint32_t> UsefulFidelityLevels(const EventFilter& wanted,
                                           std::span<const std::string> event_types);

}  // namespace neurontrace
