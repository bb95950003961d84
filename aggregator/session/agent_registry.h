// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Identifies one control connection of one agent; unique while the aggregator runs.
using ConnectionId = uint64_t;

// An agent that is or was connected.
struct KnownAgent {
  AgentInfo info;
  std::optional<ConnectionId> connection;  // nullopt: not connected
  uint64_t first_seen_realtime_ns = 0;
  uint64_t last_seen_realtime_ns = 0;
  bool restored = false;  // from an earlier run of the aggregator, not connected since
  std::map<WorkerIdentity, WorkerInfo> workers;       // empty while not connected
  std::map<WorkerIdentity, WorkerInfo> last_workers;  // at its disconnection; empty while connected
};

// Returns whether the agent has been disconnected for longer than `for_ns`; true for an unknown one
// (null).
bool IsAwayFor(const KnownAgent* agent, uint64_t for_ns, uint64_t now_realtime_ns);

// Knows which agents exist and which workers they run. A plain state machine without I/O; time is
// passed in. Used on the coordinator's sequence only.
class AgentRegistry {
 public:
  // Adds an agent of an earlier run as known and not connected. Ignored beyond limits::kAgentsMax.
  void Restore(AgentInfo info, uint64_t first_seen_realtime_ns, uint64_t last_seen_realtime_ns);

  // Handles an agent's hello. Its inventory starts empty, because the agent reports all of it
  // again. An earlier connection of the same agent is superseded: reports over it are refused from
  // then on.
  //
  // Fails with INVALID_ARGUMENT if an id that everything else depends on is missing. Fails with
  // FAILED_PRECONDITION for a protocol version that is not supported; the message says which side
  // to update. Fails with RESOURCE_EXHAUSTED beyond limits::kAgentsMax connected agents.
  absl::Status Connect(const AgentInfo& info, ConnectionId connection, uint64_t now_realtime_ns);

  // Returns true if this was the agent's current connection; a superseded one changes nothing.
  bool Disconnect(const std::string& agent_id, ConnectionId connection, uint64_t now_realtime_ns);

  bool IsCurrent(const std::string& agent_id, ConnectionId connection) const;
  // Notes that the agent was heard from; the argument is CLOCK_REALTIME in ns.
  void Touch(const std::string& agent_id, uint64_t now_realtime_ns);

  // Adds or replaces a worker. Fails with NOT_FOUND for an unknown agent, with INVALID_ARGUMENT for
  // a worker of another instance than the agent's, and with RESOURCE_EXHAUSTED beyond
  // limits::kWorkersPerAgentMax.
  absl::Status PutWorker(const std::string& agent_id, const WorkerInfo& worker);
  // Removes a worker whose process has ended. Ignores unknown ones.
  void RemoveWorker(const std::string& agent_id, const WorkerIdentity& worker);

  // Returns nullptr for an unknown agent. Valid until the registry changes.
  const KnownAgent* Find(const std::string& agent_id) const;
  const std::map<std::string, KnownAgent>& agents() const { return agents_; }
  size_t connected() const { return connected_; }
  // Sums over all agents.
  size_t workers() const;

 private:
  // Makes room for a new agent. Requires that at least one known agent is not connected.
  void ForgetLongestDisconnected();

  std::map<std::string, KnownAgent> agents_;
  size_t connected_ = 0;  // of agents_, kept because every hello needs it
};

}  // namespace neurontrace
