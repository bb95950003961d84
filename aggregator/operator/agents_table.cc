// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/agents_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace neurontrace {

// Pointers into the registry are sorted, so no record is copied. They are valid until this returns,
// as nothing else runs on the sequence.
StatusTable AgentsTable(const AgentRegistry& registry, uint64_t now_realtime_ns) {
  std::vector<const KnownAgent*> agents;
  for (const auto& [id, agent] : registry.agents()) agents.push_back(&agent);
  std::stable_sort(agents.begin(), agents.end(), [](const KnownAgent* a, const KnownAgent* b) {
    if (a->connection || b->connection) return !a->connection && b->connection;
    return a->last_seen_realtime_ns > b->last_seen_realtime_ns;
  });
  StatusTable table{"Agents", {"instance", "agent", "version", "connected", "workers", "seen"}, {}};
  for (const KnownAgent* const agent : agents) {
    // A clock that was set back must not give a negative age.
    const uint64_t seen_ns = std::min(agent->last_seen_realtime_ns, now_realtime_ns);
    table.rows.push_back(
        {agent->info.instance_id, agent->info.agent_id, agent->info.agent_version,
         agent->connection ? "yes" : "no", std::to_string(agent->workers.size()),
         fmt::format("{:.1f} s ago", static_cast<double>(now_realtime_ns - seen_ns) * 1e-9)});
  }
  return table;
}

}  // namespace neurontrace
