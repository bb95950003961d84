// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "agent/control/control_stream.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Between what a control session says and hears and the messages of a Control call. Any thread.
v1::AgentReport ToMessage(const AgentReport& report);

// Checks an order and tells the listener of it; what a later version orders is passed over.
// INVALID_ARGUMENT, with nothing told, for one that makes no sense.
absl::Status TellOrder(const v1::AgentOrder& order, ControlStream::Listener& listener);

}  // namespace neurontrace
