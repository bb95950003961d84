// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/host/proc_files.h"
#include "base/clock.h"

namespace neurontrace {

// The counters of a host at one moment.
struct HostReading {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  std::vector<CpuTimes> cpus;  // in the order of /proc/stat
  MemoryReading memory;
};

// Reads `stat` and `meminfo` of `proc_root`, which is /proc but in tests. A millisecond or less,
// and blocks for no longer. UNAVAILABLE where a file cannot be read; else as the parsers say.
absl::StatusOr<HostReading> ReadHost(const std::string& proc_root, const Clock& clock);

}  // namespace neurontrace
