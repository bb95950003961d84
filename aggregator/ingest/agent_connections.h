// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_order.h"
#include "lib/base/mutex.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

class ControlExchange;

// The open Control calls by their connection, through which orders reach their agents. Any thread.
class AgentConnections : public OrderSender {
 public:
  ConnectionId Add(std::weak_ptr<ControlExchange> call);
  void Remove(ConnectionId connection);

  void SendOrder(const std::string& agent_id, ConnectionId connection,
                 const CaptureOrder& order) override;
  // Drops the order if the connection is gone: an agent that returns is told again.
  void Send(ConnectionId connection, v1::AgentOrder order);
  // Ends a call whose agent has connected again.
  void Supersede(ConnectionId connection);
  // The aggregator is about to end: agents need not wait for the connection to break.
  void EndAll();

 private:
  std::shared_ptr<ControlExchange> Find(ConnectionId connection);

  Mutex mutex_;
  ConnectionId last_ NT_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, std::weak_ptr<ControlExchange>> calls_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
