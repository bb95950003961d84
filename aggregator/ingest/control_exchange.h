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

// What every Control call uses; outlives them all. `reports` is used on `sequence` only.
struct ControlDeps {
  TaskRunner& sequence;
  AgentReports& reports;
  AgentConnections& connections;
};

// What is said in one agent's Control call, without the call: reports go to the coordinator's
// sequence one after the other, the next one is read when the last was dealt with. Any thread; the
// transport is used without the lock.
class ControlExchange final : public BidiExchange<v1::AgentReport, v1::AgentOrder>,
                              public std::enable_shared_from_this<ControlExchange> {
 public:
  ControlExchange(const ControlDeps& deps, Transport transport)
      : BidiExchange(std::move(transport)), deps_(deps) {}
  void Begin();

  // An agent that lets limits::kAgentOrdersMax orders lie is disconnected.
  void Send(v1::AgentOrder order);
  void End(const grpc::Status& status);

  void OnReadDone(bool ok);
  void OnDone();

 private:
  void Handle();  // `incoming_`, on the sequence
  Next Plan() NT_REQUIRES(mutex_) override;
  void BeginRead() override { transport_.read(&incoming_); }

  const ControlDeps deps_;
  ConnectionId connection_ = 0;
  std::string agent_id_;  // only on the sequence; empty until the hello

  std::deque<v1::AgentOrder> orders_ NT_GUARDED_BY(mutex_);
  bool handling_ NT_GUARDED_BY(mutex_) = false;  // incoming_ is the sequence's
  bool ending_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace
