// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/doctor_finding.h"
#include "cli/host_view.h"

// What of this machine's agent `doctor` looks at.
namespace neurontrace::cli {

// How the agent that runs here was started, as its command line tells; defaults where none runs.
struct LocalAgent {
  std::optional<uint32_t> pid;
  std::string socket = "/run/neurontrace/agent.sock";
  std::string spool = "/var/lib/neurontrace/spool";  // "none": it has none
  uint64_t spool_bytes = uint64_t{4} << 30;
};
LocalAgent FindLocalAgent(HostView& host, const std::string& proc);

// The socket that taps connect to. `is_expected`: this machine is meant to have an agent.
Finding CheckAgentSocket(HostView& host, const std::string& path, bool is_expected);

// The directory in which the agent keeps what the aggregator has not.
Finding CheckSpool(HostView& host, const LocalAgent& agent);

}  // namespace neurontrace::cli
