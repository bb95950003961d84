// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/trace/agent_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Between the hello message and its value; FromProto checks every text's length and that
// it has no control characters (INVALID_ARGUMENT names the field). Whether the agent is welcome is
// another question.
void ToProto(const AgentInfo& value, v1::AgentHello* message);
absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& message);

}  // namespace neurontrace
