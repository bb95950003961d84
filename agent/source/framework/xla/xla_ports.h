// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace neurontrace {

// Finds the port of a process's ProfilerService in a proc file system (proc_pid_net(5)); tests give
// another directory. jax and torch_xla listen on all addresses of the machine, at the port that
// their program chose. The port is that of kXlaPortVariable. Without the variable it is the only
// port on which the process listens on all addresses, if the process has jaxlib or torch_xla
// loaded: an unknown server is never called to find out what it is.
//
// A port counts only if the kernel says that a socket of this very process listens there, so that
// no variable can point this agent at another server. Any thread.
class XlaPorts {
 public:
  explicit XlaPorts(std::string proc_root = "/proc") : root_(std::move(proc_root)) {}

  // Returns the address for gRPC, such as "ipv4:127.0.0.1:9012". Fails with NOT_FOUND if there is
  // none, with a message that names what the process lacks, and with FAILED_PRECONDITION if this
  // agent cannot look into the process, or reach it as it has another network. Blocks for the
  // kernel only.
  absl::StatusOr<std::string> Find(uint32_t pid) const;

 private:
  const std::string root_;
};

}  // namespace neurontrace
