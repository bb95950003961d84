// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/session/agent_registry.h"
#include "lib/health/status_page.h"

namespace neurontrace {

// The agents of /statusz: those that are not connected first, who left last before them all, as of
// a large fleet only the first rows are shown.
StatusTable AgentsTable(const AgentRegistry& registry, uint64_t now_realtime_ns);

}  // namespace neurontrace
