// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "aggregator/session/agent_registry.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// Returns how many characters have to be changed, inserted, deleted or swapped with their neighbour
// to turn one name into the other (optimal string alignment, the restricted Damerau-Levenshtein
// distance). Takes time proportional to the product of the lengths. Pure.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name that was probably meant: the nearest one, or one that contains `name`; the first
// of several. Empty if none is near, that is if more than a third of `name` would have to change.
std::string NearestName(std::string_view name, std::span<const std::string> names);

// Describes what exists, for somebody whose capture has matched nothing: jobs, instances, workers,
// and what was probably meant. Lists only a few names of each.
std::string DescribeInventory(const AgentRegistry& registry, const CaptureSpec& spec);

}  // namespace neurontrace
