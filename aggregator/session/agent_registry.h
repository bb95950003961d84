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

// Names one control connection of one agent for as long as the aggregator runs.
using ConnectionId = uint64_t;

// One agent that is or was here.
struct KnownAgent {
  AgentInfo info;
  std::optional<ConnectionId> connection;  // nothing: not connected
  uint64_t first_seen_realtime_ns = 0;
  uint64_t last_seen_realtime_ns = 0;
  bool restored = false;  // of an earlier run of the aggregator, and not here since
  std::map<WorkerIdentity, WorkerInfo> workers;       // empty while not connected
  std::map<WorkerIdentity, WorkerInfo> last_workers;  // when it went; empty while connected
};

// Whether it has not been connected for longer than `for_ns`; one that is not known (null) has not.
bool IsAwayFor(const KnownAgent* agent, uint64_t for_ns, uint64_t now_realtime_ns);

// Which agents there are and what they run. A plain state machine: time is passed in. One sequence.
class AgentRegistry {
 public:
  // An agent of an earlier run of the aggregator: known, not connected.
  void Restore(AgentInfo info, uint64_t first_seen_realtime_ns, uint64_t last_seen_realtime_ns);

  // An agent says hello. Its inventory begins empty: it tells all of it again. A connection that
  // the agent still had is superseded: what comes over it is refused from then on. INVALID_ARGUMENT
  // without the ids that everything else hangs on, FAILED_PRECONDITION for a protocol version more
  // than one away from ours (it says which side is to be updated), RESOURCE_EXHAUSTED beyond
  // limits::kAgentsMax connected agents.
  absl::Status Connect(const AgentInfo& info, ConnectionId connection, uint64_t now_realtime_ns);

  // True if this was the agent's connection; a superseded one changes nothing.
  bool Disconnect(const std::string& agent_id, ConnectionId connection, uint64_t now_realtime_ns);

  bool IsCurrent(const std::string& agent_id, ConnectionId connection) const;
  void Touch(const std::string& agent_id, uint64_t now_realtime_ns);

  // RESOURCE_EXHAUSTED beyond limits::kWorkersPerAgentMax, INVALID_ARGUMENT for a worker of another
  // instance than the agent's.
  absl::Status PutWorker(const std::string& agent_id, const WorkerInfo& worker);
  void RemoveWorker(const std::string& agent_id, const WorkerIdentity& worker);

  const KnownAgent* Find(const std::string& agent_id) const;
  const std::map<std::string, KnownAgent>& agents() const { return agents_; }
  size_t connected() const { return connected_; }
  size_t workers() const;

 private:
  void ForgetLongestGone();

  std::map<std::string, KnownAgent> agents_;
  size_t connected_ = 0;
};

}  // namespace neurontrace
