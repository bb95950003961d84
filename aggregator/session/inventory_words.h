// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "aggregator/session/agent_registry.h"
#include "trace/capture_spec.h"

namespace neurontrace {

// What there is, for somebody whose capture has matched none of it: jobs, instances and workers,
// and what was probably meant. Names at most a handful of each.
std::string DescribeInventory(const AgentRegistry& registry, const CaptureSpec& spec);

}  // namespace neurontrace
