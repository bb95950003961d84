// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "aggregator/session/agent_registry.h"
#include "lib/trace/capture_spec.h"

namespace neurontrace {

// How many characters have to be changed, put in, left out or exchanged with their neighbour to
// make one name of the other. Pure; takes a time of the product of the lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// Returns the name that was probably meant: the nearest, or one that contains `name`; the first of
// equals. Empty if none is near: more than a third of it would have to change.
std::string NearestName(std::string_view name, std::span<const std::string> names);

// What there is, for somebody whose capture has matched none of it: jobs, instances and workers,
// and what was probably meant. Names at most a handful of each.
std::string DescribeInventory(const AgentRegistry& registry, const CaptureSpec& spec);

}  // namespace neurontrace
