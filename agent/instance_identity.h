// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "agent/config.h"
#include "agent/imds_client.h"
#include "lib/trace/agent_info.h"

namespace neurontrace {

// The files and the service that identify this machine; tests give others.
struct IdentityPlaces {
  std::string host_name_file = "/proc/sys/kernel/hostname";
  std::string boot_id_file = "/proc/sys/kernel/random/boot_id";
  std::string machine_id_file = "/etc/machine-id";
  ImdsClient::Options imds;
};

// Determines who this agent is. The instance id is the configured one, else EC2's, else the host
// name; `instance_id_source` reports which ("flag", "environment", "imds", "hostname"). An agent id
// that is not configured is derived from the instance, /etc/machine-id and the socket's path, so
// that it stays the same across restarts and differs between two agents of one machine. Never
// fails; blocks for up to 600 ms outside EC2. Called on the main thread, before the agent is made.
AgentInfo ResolveIdentity(const AgentConfig& config, const IdentityPlaces& places);

}  // namespace neurontrace
