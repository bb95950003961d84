// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "agent/control/control_stream.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Conversions between the values of agent/control and the protobuf messages of the Control call
// (proto/). They are here because agent/control does not depend on protobuf. Pure; any thread.
//
// Encodes one report. Never fails.
v1::AgentReport ToMessage(const AgentReport& report);

// Checks an order completely, then calls the listener's function for it. Fails with
// INVALID_ARGUMENT, without any call, if a field is missing or out of range. An order of a kind
// that this version does not know is ignored, so that a newer aggregator can talk to an older
// agent.
absl::Status DispatchOrder(const v1::AgentOrder& order, ControlStream::Listener& listener);

}  // namespace neurontrace
