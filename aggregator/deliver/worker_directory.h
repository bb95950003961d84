// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/ids.h"

namespace neurontrace {

// The vendor's directories of some workers, in their order: INSTANCE_pid_PID, in containers
// INSTANCE_pid_PID_CONTAINER, with the first twelve characters of its id. Of two that would have
// the same, the second one gets the time when its process began, in ticks, behind it. What no name
// can have becomes a "-".
std::vector<std::string> WorkerDirectories(const std::vector<WorkerIdentity>& workers);

// The directory of a session in it: nanoseconds since the epoch, in 19 digits.
std::string SessionDirectory(uint64_t realtime_ns);

}  // namespace neurontrace
