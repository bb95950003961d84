// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "aggregator/session/agent_registry.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

class ControlExchange;

// The control calls that are open, by their connection, so that orders find their agent. Any
// thread.
class AgentConnections {
 public:
  ConnectionId Add(std::weak_ptr<ControlExchange> call);
  void Remove(ConnectionId connection);

  // An order for a connection that is gone is dropped: the agent is told again when it returns.
  void Send(ConnectionId connection, v1::AgentOrder order);
  // Ends a call whose agent has connected anew.
  void Supersede(ConnectionId connection);
  // The aggregator is about to end: agents need not wait for the connection to break.
  void EndAll();

 private:
  std::shared_ptr<ControlExchange> Find(ConnectionId connection);

  std::mutex mutex_;
  ConnectionId last_ = 0;                                         // guarded by mutex_
  std::map<ConnectionId, std::weak_ptr<ControlExchange>> calls_;  // guarded by mutex_
};

}  // namespace neurontrace
