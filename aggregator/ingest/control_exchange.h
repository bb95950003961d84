// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/bidi_exchange.h"
#include "lib/base/task_runner.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// What every Control call uses; must outlive them all. `reports` is used on `sequence` only.
struct ControlDeps {
  TaskRunner& sequence;
  AgentReports& reports;
  AgentConnections& connections;
};

// The conversation of one agent's Control call, without the call. Reports are handled on the
// coordinator's sequence one at a time, and the next one is read once the last is handled, so a
// busy coordinator slows its agents down. Any thread.
class ControlExchange final : public BidiExchange<v1::AgentReport, v1::AgentOrder>,
                              public std::enable_shared_from_this<ControlExchange> {
 public:
  ControlExchange(const ControlDeps& deps, Transport transport)
      : BidiExchange(std::move(transport)), deps_(deps) {}
  // Registers the connection and starts to read. Called once, before any callback of the transport.
  void Begin();

  // Queues an order. An agent that leaves limits::kAgentOrdersMax orders unread is disconnected.
  void Send(v1::AgentOrder order);
  // Ends the call with this status after sending what is queued. Reports that arrive afterwards are
  // not handled. Does nothing if the call is ending already.
  void End(const grpc::Status& status);

  // Handles a report. `ok` false means that the agent has closed its side; the call then ends with
  // the status that is set.
  void OnReadDone(bool ok);
  // Removes the connection, then reports the disconnection on the sequence; the last callback.
  void OnDone();

 private:
  void Handle();  // processes incoming_, on the sequence
  Next Plan() NT_REQUIRES(mutex_) override;
  void BeginRead() override { transport_.read(&incoming_); }

  const ControlDeps deps_;
  ConnectionId connection_ = 0;
  // Set by the first report; identifies the agent of all later ones.
  std::string agent_id_;  // on the sequence only; empty until the hello

  // Orders that wait for the write before them, oldest first.
  std::deque<v1::AgentOrder> orders_ NT_GUARDED_BY(mutex_);
  bool handling_ NT_GUARDED_BY(mutex_) = false;  // incoming_ belongs to the sequence
  // No further report is read. What is queued is still sent.
  bool ending_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace
