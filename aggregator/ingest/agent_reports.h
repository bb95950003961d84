// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/agent_connections.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/store/chunk_store.h"
#include "lib/trace/trigger_rule.h"
#include "lib/trace/worker_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Between the messages of a Control call and the coordinator: checks what agents say, and says in
// messages what they are told. On the coordinator's sequence.
class AgentReports {
 public:
  // What triggers have to do with it; each may be left out. On the sequence.
  struct TriggerHooks {
    std::function<v1::AgentOrder()> rules;  // for an agent that has just been welcomed
    std::function<void(const std::string& agent_id, const TriggerFired&)> on_fired;
    // Of a worker in a capture, whatever the coordinator makes of it.
    std::function<void(const std::string& agent_id, const CaptureWorkerStatus&)> on_status;
  };

  // `aggregator_id` is what agents are welcomed with. The others outlive it.
  AgentReports(Coordinator& coordinator, ChunkStore& chunks, AgentConnections& connections,
               std::string aggregator_id, TriggerHooks triggers = {})
      : coordinator_(coordinator),
        chunks_(chunks),
        connections_(connections),
        aggregator_id_(std::move(aggregator_id)),
        triggers_(std::move(triggers)) {}

  // The agent's first report: connects it, ends the call that it had before, and answers with the
  // order to send first. INVALID_ARGUMENT
  // when it is no hello, and see Coordinator::Connect. `agent_id` is then the agent's.
  absl::StatusOr<v1::AgentOrder> Connect(const v1::AgentReport& report, ConnectionId from,
                                         std::string& agent_id);
  // What is said right after the welcome; nothing: nothing is.
  std::optional<v1::AgentOrder> AfterWelcome() const;
  // Any later one. An error ends the call.
  absl::Status Handle(const v1::AgentReport& report, const std::string& agent_id,
                      ConnectionId from);
  void Disconnect(const std::string& agent_id, ConnectionId from) {
    coordinator_.Disconnect(agent_id, from);
  }

 private:
  Coordinator& coordinator_;
  ChunkStore& chunks_;
  AgentConnections& connections_;
  const std::string aggregator_id_;
  const TriggerHooks triggers_;
};

v1::AgentOrder ToOrder(const CaptureOrder& order);

}  // namespace neurontrace
