// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace neurontrace {

// Minor version of neurontrace.v1 that this build speaks. Peers one older or one newer are
// accepted. 2: captures are armed before they begin, and begin at a time.
inline constexpr uint32_t kProtocolVersion = 2;

// An agent as it introduces itself: the fields of neurontrace.v1.AgentHello.
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
