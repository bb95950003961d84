// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/stacks_report_handler.h"
#include "aggregator/ingest/trigger_report_handler.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/store/chunk_store.h"
#include "lib/trace/worker_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Translates between the messages of a Control call and the coordinator: validates what agents
// send, and turns answers into messages. On the coordinator's sequence.
class AgentReports {
 public:
  // Agents are welcomed with `aggregator_id`. The references must outlive this. Without `triggers`
  // agents get no rules.
  AgentReports(Coordinator& coordinator, ChunkStore& chunks, AgentConnections& connections,
               std::string aggregator_id, TriggerReportHandler* triggers = nullptr,
               StacksReportHandler* stacks = nullptr)
      : coordinator_(coordinator),
        chunks_(chunks),
        connections_(connections),
        aggregator_id_(std::move(aggregator_id)),
        triggers_(triggers),
        stacks_(stacks) {}

  // Handles an agent's first report: connects it, ends the call that it had before, and returns the
  // order to send first. Sets `agent_id`. Fails with INVALID_ARGUMENT if the report is no valid
  // hello, and as Coordinator::Connect does.
  absl::StatusOr<v1::AgentOrder> Connect(const v1::AgentReport& report, ConnectionId from,
                                         std::string& agent_id);
  // Returns what to send right after the welcome; nullopt: nothing.
  std::optional<v1::AgentOrder> AfterWelcome() const;
  // Handles any later report. An error ends the call.
  absl::Status Handle(const v1::AgentReport& report, const std::string& agent_id,
                      ConnectionId from);
  // Marks the agent as disconnected if `from` is still its connection. A later end of a superseded
  // call changes nothing.
  void Disconnect(const std::string& agent_id, ConnectionId from) {
    coordinator_.Disconnect(agent_id, from);
  }

 private:
  // Used on the coordinator's sequence only.
  Coordinator& coordinator_;
  // Read for the cursors of a returning agent: the first sequence of each stream that is not
  // stored.
  ChunkStore& chunks_;
  AgentConnections& connections_;
  // Identifies the store to agents, which compare it with the store that their spool was written
  // for.
  const std::string aggregator_id_;
  TriggerReportHandler* const triggers_;  // may be null
  StacksReportHandler* const stacks_;     // may be null: stacks are ignored
};

// Converts an order to its message. Pure.
v1::AgentOrder ToOrder(const CaptureOrder& order);

}  // namespace neurontrace
