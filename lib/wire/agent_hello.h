// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/trace/agent_info.h"
#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {

// Converts between the hello message and its value. ToProto cuts and cleans texts. FromProto checks
// the length of every text and that it has no control characters; it fails with INVALID_ARGUMENT,
// naming the field. Neither decides whether the agent is accepted. Pure functions, any thread.
void ToProto(const AgentInfo& value, v1::AgentHello* message);
absl::StatusOr<AgentInfo> FromProto(const v1::AgentHello& message);

}  // namespace neurontrace
