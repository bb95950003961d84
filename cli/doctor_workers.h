// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/doctor_agent.h"
#include "cli/doctor_finding.h"
#include "cli/host_view.h"

namespace neurontrace::cli {

// Checks the processes of this machine that have libnrt.so.1 mapped: whether they have the tap,
// whether it serves this agent, and whether the runtime records for itself
// (NEURON_RT_INSPECT_ENABLE), and, if `agent` asks PyTorch for traces, what their environment lacks
// for that. Processes of other users are visible to root only. Called on the main
// thread, as is CheckPreload.
std::vector<Finding> CheckWorkers(HostView& host, const std::string& proc,
                                  const std::string& agent_socket, const LocalAgent& agent = {});

// Checks what in this environment prevents preloading the tap: entries of LD_PRELOAD that do not
// exist, and launchers that are setuid or static (`programs`: their paths).
std::vector<Finding> CheckPreload(HostView& host, const std::vector<std::string>& programs);

}  // namespace neurontrace::cli
