// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace neurontrace {

// Minor version of neurontrace.v1 that this build implements. Peers that are one version older (at
// least version 1) or newer are accepted, so that agents and aggregators can be upgraded in either
// order.
inline constexpr uint32_t kProtocolVersion = 1;
inline constexpr uint32_t kProtocolVersionOldest = 1;

// An agent as it introduces itself: the fields of neurontrace.v1.AgentHello. Text from the agent;
// cleaned when it is converted from the wire. A plain value.
struct AgentInfo {
  uint32_t protocol_version = 0;
  std::string agent_id;  // stable over restarts of the agent on one machine
  std::string agent_version;
  std::string instance_id;
  std::string instance_id_source;
  std::string boot_id;
  std::string host_name;
  std::string instance_type;

  friend bool operator==(const AgentInfo&, const AgentInfo&) = default;
};

}  // namespace neurontrace
