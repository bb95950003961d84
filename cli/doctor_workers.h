// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

namespace neurontrace::cli {

// The processes of this machine that have libnrt.so.1 mapped: whether the tap is in them, whether
// it serves this agent, and whether the runtime records for itself (NEURON_RT_INSPECT_ENABLE). Of
// other users' processes only root sees anything.
std::vector<Finding> CheckWorkers(HostView& host, const std::string& proc,
                                  const std::string& agent_socket);

// What in this environment keeps a preloaded tap out: entries of LD_PRELOAD that are not there, and
// the launchers that the user names being setuid or static (`programs`: paths).
std::vector<Finding> CheckPreload(HostView& host, const std::vector<std::string>& programs);

}  // namespace neurontrace::cli
