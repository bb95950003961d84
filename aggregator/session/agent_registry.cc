// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/agent_registry.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Checks the ids, which everything else depends on, and the protocol version. Fails as
// AgentRegistry::Connect does.
absl::Status CheckHello(const AgentInfo& info) {
  if (info.agent_id.empty()) return InvalidArgument("hello without an agent_id");
  if (info.instance_id.empty()) {
    return InvalidArgument("hello of agent {} without an instance_id", info.agent_id);
  }
  if (info.protocol_version < kProtocolVersionOldest) {
    return FailedPrecondition(
        "agent {} uses protocol {} and this aggregator supports {} to {}; update the agent",
        info.agent_id, info.protocol_version, kProtocolVersionOldest, kProtocolVersion + 1);
  }
  // One version ahead is accepted, so that agents and aggregator can be updated in either order.
  if (info.protocol_version > kProtocolVersion + 1) {
    return FailedPrecondition(
        "agent {} uses protocol {} and this aggregator supports {} to {}; update the aggregator",
        info.agent_id, info.protocol_version, kProtocolVersionOldest, kProtocolVersion + 1);
  }
  return absl::OkStatus();
}

}  // namespace

bool IsAwayFor(const KnownAgent* agent, uint64_t for_ns, uint64_t now_realtime_ns) {
  if (agent == nullptr) return true;
  return !agent->connection && now_realtime_ns > agent->last_seen_realtime_ns + for_ns;
}

void AgentRegistry::Restore(AgentInfo info, uint64_t first_seen_realtime_ns,
                            uint64_t last_seen_realtime_ns) {
  if (agents_.size() >= limits::kAgentsMax) return;
  const std::string agent_id = info.agent_id;
  agents_[agent_id] = {.info = std::move(info),
                       .first_seen_realtime_ns = first_seen_realtime_ns,
                       .last_seen_realtime_ns = last_seen_realtime_ns,
                       .restored = true};
}

absl::Status AgentRegistry::Connect(const AgentInfo& info, ConnectionId connection,
                                    uint64_t now_realtime_ns) {
  RETURN_IF_ERROR(CheckHello(info));
  auto it = agents_.find(info.agent_id);
  if (it == agents_.end()) {
    if (connected_ >= limits::kAgentsMax) {
      return ResourceExhausted("agent {}: {} agents are connected, which is the limit",
                               info.agent_id, connected_);
    }
    // Fewer are connected than may be known, so one that is not connected exists.
    if (agents_.size() >= limits::kAgentsMax) ForgetLongestDisconnected();
    it =
        agents_.emplace(info.agent_id, KnownAgent{.first_seen_realtime_ns = now_realtime_ns}).first;
  }
  // From here on the new connection is the current one, and reports over an earlier one are
  // refused.
  KnownAgent& agent = it->second;
  if (!agent.connection) ++connected_;
  agent.info = info;
  agent.connection = connection;
  agent.restored = false;
  agent.last_seen_realtime_ns = now_realtime_ns;
  agent.workers.clear();
  agent.last_workers.clear();
  return absl::OkStatus();
}

// Requires that not all agents are connected: a connected one must never be forgotten.
void AgentRegistry::ForgetLongestDisconnected() {
  const auto oldest = std::min_element(agents_.begin(), agents_.end(), [](auto& a, auto& b) {
    const auto rank = [](const KnownAgent& agent) {
      return agent.connection ? UINT64_MAX : agent.last_seen_realtime_ns;
    };
    return rank(a.second) < rank(b.second);
  });
  agents_.erase(oldest);
}

bool AgentRegistry::Disconnect(const std::string& agent_id, ConnectionId connection,
                               uint64_t now_realtime_ns) {
  // The end of a superseded call arrives after the agent has reconnected and must not mark it as
  // disconnected.
  if (!IsCurrent(agent_id, connection)) return false;
  KnownAgent& agent = agents_.at(agent_id);
  agent.connection.reset();
  agent.last_seen_realtime_ns = now_realtime_ns;
  // Kept so that a capture that starts now can say which workers it lacks.
  agent.last_workers = std::exchange(agent.workers, {});
  --connected_;
  return true;
}

bool AgentRegistry::IsCurrent(const std::string& agent_id, ConnectionId connection) const {
  const KnownAgent* const agent = Find(agent_id);
  return agent != nullptr && agent->connection == connection;
}

void AgentRegistry::Touch(const std::string& agent_id, uint64_t now_realtime_ns) {
  const auto it = agents_.find(agent_id);
  if (it != agents_.end()) it->second.last_seen_realtime_ns = now_realtime_ns;
}

absl::Status AgentRegistry::PutWorker(const std::string& agent_id, const WorkerInfo& worker) {
  const auto it = agents_.find(agent_id);
  if (it == agents_.end()) return NotFound("the unknown agent {} reports a worker", agent_id);
  KnownAgent& agent = it->second;
  if (worker.identity.instance_id != agent.info.instance_id) {
    return InvalidArgument("agent {} is on instance {} and reports a worker on {}", agent_id,
                           agent.info.instance_id, worker.identity.instance_id);
  }
  if (agent.workers.size() >= limits::kWorkersPerAgentMax &&
      !agent.workers.contains(worker.identity)) {
    return ResourceExhausted("agent {} has {} workers, which is the limit", agent_id,
                             agent.workers.size());
  }
  agent.workers[worker.identity] = worker;
  return absl::OkStatus();
}

void AgentRegistry::RemoveWorker(const std::string& agent_id, const WorkerIdentity& worker) {
  const auto it = agents_.find(agent_id);
  if (it != agents_.end()) it->second.workers.erase(worker);
}

const KnownAgent* AgentRegistry::Find(const std::string& agent_id) const {
  const auto it = agents_.find(agent_id);
  return it == agents_.end() ? nullptr : &it->second;
}

size_t AgentRegistry::workers() const {
  size_t sum = 0;
  for (const auto& [id, agent] : agents_) sum += agent.workers.size();
  return sum;
}

}  // namespace neurontrace
