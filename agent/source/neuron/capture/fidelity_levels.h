// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/event_filter.h"

// The levels of fidelity: what a capture leaves out, class by class in one order, to stay within
// its budget. Level 0 leaves out nothing; each further one leaves out what the one before does, and
// more (docs/decisions/0020-an-overhead-budget-leaves-out-event-classes.md). Pure functions.
namespace neurontrace {

inline constexpr uint32_t kFidelityLevels = 6;

// What is still recorded at `level`, of what a capture asks for.
const EventFilter& FilterOfFidelity(uint32_t level);

// What is not, in words: "allocation events"; empty for level 0.
std::string_view LeftOutOfFidelity(uint32_t level);

// The levels that make a difference to a capture of `wanted` events on a runtime with these types,
// ascending, 0 the first: each leaves out a type that the one before has, and none leaves out all.
// Where the runtime's types are not known, those that are documented are taken.
std::vector<uint32_t> UsefulFidelityLevels(const EventFilter& wanted,
                                           std::span<const std::string> event_types);

}  // namespace neurontrace
