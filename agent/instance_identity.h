// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/config.h"
#include "agent/imds_client.h"
#include "lib/trace/agent_info.h"

namespace neurontrace {

// Where an agent looks to find out who it is.
struct IdentityPlaces {
  std::string host_name_file = "/proc/sys/kernel/hostname";
  std::string boot_id_file = "/proc/sys/kernel/random/boot_id";
  std::string machine_id_file = "/etc/machine-id";
  ImdsClient::Options imds;
};

// Who this agent is. The instance id is what the command line or the environment says, else EC2's,
// else the host's name; `instance_id_source` tells which. An agent id that is not given is derived
// from the instance, the machine and the socket, so that it is the same after each restart. Blocks
// for up to 600 ms where nobody answers for EC2.
AgentInfo ResolveIdentity(const AgentConfig& config, const IdentityPlaces& places);

}  // namespace neurontrace
