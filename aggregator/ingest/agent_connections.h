// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "aggregator/ingest/agent_order_sender.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_order.h"
#include "lib/base/mutex.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

class ControlExchange;

// The open Control calls by their connection, through which orders reach agents. Any thread. Holds
// calls weakly: gRPC decides how long they live.
class AgentConnections : public OrderSender, public AgentOrderSender {
 public:
  // Registers a call under a new id, which is never reused.
  ConnectionId Add(std::weak_ptr<ControlExchange> call);
  // Removes a call that has ended. Ids that are not registered are ignored.
  void Remove(ConnectionId connection);

  // Sends an order for OrderSender, called by the coordinator on its sequence. The agent's id is
  // not needed: the connection identifies the call. An order for a connection that is gone is
  // dropped, as in Send.
  void SendOrder(const std::string& agent_id, ConnectionId connection,
                 const CaptureOrder& order) override;
  // Drops the order if the connection is gone: an agent that returns gets it again. Does not wait
  // for the agent.
  void Send(ConnectionId connection, v1::AgentOrder order) override;
  // Ends a call with ABORTED because its agent has connected again.
  void Supersede(ConnectionId connection);
  // Ends all calls with UNAVAILABLE when the aggregator shuts down, so that agents notice at once.
  void EndAll();

 private:
  // Returns the call of a connection, or null if it is gone or being destroyed. The caller keeps it
  // alive and must use it without mutex_, because a call that ends removes itself.
  std::shared_ptr<ControlExchange> Find(ConnectionId connection);

  // Never held while a call is used.
  Mutex mutex_;
  ConnectionId last_ NT_GUARDED_BY(mutex_) = 0;
  std::map<ConnectionId, std::weak_ptr<ControlExchange>> calls_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
