// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// Checks of this machine's agent by `doctor`. Nothing is changed, and nothing fails: problems are
// findings. Called on the main thread.
namespace neurontrace::cli {

// How the running agent was started, by its command line; the agent's defaults if none runs.
struct LocalAgent {
  // Pid of the agent; nullopt if none runs or its command line cannot be read.
  std::optional<uint32_t> pid;
  std::string socket = "/run/neurontrace/agent.sock";
  std::string spool = "/var/lib/neurontrace/spool";  // "none": it has no spool
  uint64_t spool_bytes = uint64_t{4} << 30;
  std::string kineto_directory;     // empty: it asks no framework for traces
  std::string framework_directory;  // empty: it watches none
};
// Searches the processes in `proc`, the path of the proc file system, for an agent. Takes the first
// one.
LocalAgent FindLocalAgent(HostView& host, const std::string& proc);

// Checks the socket to which taps connect. `is_expected`: this machine should have an agent.
Finding CheckAgentSocket(HostView& host, const std::string& path, bool is_expected);

// Checks the directory in which the agent keeps chunks that the aggregator does not have yet.
Finding CheckSpool(HostView& host, const LocalAgent& agent);

// Checks the directory in which PyTorch's workers ask the agent for orders, which `agent` has.
Finding CheckKinetoDirectory(HostView& host, const LocalAgent& agent);

}  // namespace neurontrace::cli
