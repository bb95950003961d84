// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/session/agent_registry.h"
#include "lib/health/status_page.h"

namespace neurontrace {

// Returns the table of agents for /statusz. Agents that are not connected come first, the latest to
// leave at the top, because only the first rows of a large fleet are shown. On the coordinator's
// sequence, which owns `registry`.
StatusTable AgentsTable(const AgentRegistry& registry, uint64_t now_realtime_ns);

}  // namespace neurontrace
