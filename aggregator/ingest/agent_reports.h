// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/trigger_report_handler.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/store/chunk_store.h"
#include "lib/trace/worker_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Between the messages of a Control call and the coordinator: checks what agents say, and says in
// messages what they are told. On the coordinator's sequence.
class AgentReports {
 public:
  // `aggregator_id` is what agents are welcomed with. The others outlive it; without `triggers`
  // agents get no rules.
  AgentReports(Coordinator& coordinator, ChunkStore& chunks, AgentConnections& connections,
               std::string aggregator_id, TriggerReportHandler* triggers = nullptr)
      : coordinator_(coordinator),
        chunks_(chunks),
        connections_(connections),
        aggregator_id_(std::move(aggregator_id)),
        triggers_(triggers) {}

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
  TriggerReportHandler* const triggers_;  // may be null
};

v1::AgentOrder ToOrder(const CaptureOrder& order);

}  // namespace neurontrace
