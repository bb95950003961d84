// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/agent_connections.h"

#include <utility>

#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/control_exchange.h"

namespace neurontrace {

ConnectionId AgentConnections::Add(std::weak_ptr<ControlExchange> call) {
  const MutexLock lock(mutex_);
  calls_.emplace(++last_, std::move(call));
  return last_;
}

void AgentConnections::Remove(ConnectionId connection) {
  const MutexLock lock(mutex_);
  calls_.erase(connection);
}

// The lock is released before the caller uses the call: ending a call leads to Remove, which takes
// the same lock.
std::shared_ptr<ControlExchange> AgentConnections::Find(ConnectionId connection) {
  const MutexLock lock(mutex_);
  const auto it = calls_.find(connection);
  return it == calls_.end() ? nullptr : it->second.lock();
}

void AgentConnections::SendOrder(const std::string&, ConnectionId connection,
                                 const CaptureOrder& order) {
  Send(connection, ToOrder(order));
}

void AgentConnections::Send(ConnectionId connection, v1::AgentOrder order) {
  if (const auto call = Find(connection)) call->Send(std::move(order));
}

// The old call may not have noticed yet that its connection is broken, and would otherwise stay
// open until a time-out.
void AgentConnections::Supersede(ConnectionId connection) {
  if (const auto call = Find(connection)) {
    call->End(grpc::Status(grpc::StatusCode::ABORTED, "the agent has reconnected"));
  }
}

void AgentConnections::EndAll() {
  // A copy: a call that ends may remove itself.
  std::map<ConnectionId, std::weak_ptr<ControlExchange>> calls;
  {
    const MutexLock lock(mutex_);
    calls = calls_;
  }
  for (const auto& [connection, call] : calls) {
    if (const auto open = call.lock()) {
      open->End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the aggregator is shutting down"));
    }
  }
}

}  // namespace neurontrace
