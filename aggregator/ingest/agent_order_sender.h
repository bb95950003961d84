// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/session/agent_registry.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Sends orders that the coordinator knows nothing of. Any thread; does not wait for the agent.
class AgentOrderSender {
 public:
  virtual ~AgentOrderSender() = default;
  // Drops the order if the connection is gone.
  virtual void Send(ConnectionId connection, v1::AgentOrder order) = 0;
};

}  // namespace neurontrace
