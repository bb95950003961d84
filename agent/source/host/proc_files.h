// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// Parsers of /proc/stat and /proc/meminfo (proc_stat(5), proc_meminfo(5)). Pure functions of the
// text, which is checked as all input from outside is; they have a fuzzer.
namespace neurontrace {

// Time of one processor since boot, in clock ticks; sums saturate.
struct CpuTimes {
  static constexpr uint32_t kAverage = UINT32_MAX;  // the line "cpu": all of them

  uint32_t cpu = kAverage;
  uint64_t total = 0;  // guests' time is in the user's already, and counts once
  uint64_t idle = 0;   // and waiting for a disk
  friend bool operator==(const CpuTimes&, const CpuTimes&) = default;
};

// Parses the lines "cpu" and "cpuN" at the beginning of /proc/stat, in their order; further lines
// are ignored. Fails with INVALID_ARGUMENT if one of them is malformed or appears twice, or if
// there is none, and with RESOURCE_EXHAUSTED beyond limits::kHostCpusMax processors.
absl::StatusOr<std::vector<CpuTimes>> ParseCpuTimes(std::string_view proc_stat);

// The share of the time between two readings of one processor in which it was not idle, in percent,
// rounded to hundredths. Not known if no time passed. Counters that run backwards, as iowait and
// those of a processor that was offline may, count as unchanged.
struct CpuShare {
  bool known = false;
  double percent = 0;
};
CpuShare ShareBetween(const CpuTimes& before, const CpuTimes& after);

// Memory of the host, in bytes.
struct MemoryReading {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // MemTotal less MemAvailable; at most total_bytes
  friend bool operator==(const MemoryReading&, const MemoryReading&) = default;
};

// Fails with INVALID_ARGUMENT if MemTotal or MemAvailable is missing, is no number of kB, or is too
// large.
absl::StatusOr<MemoryReading> ParseMemory(std::string_view proc_meminfo);
// Returns the used share in percent of the total, rounded to hundredths; 0 if the total is 0.
double PercentUsed(const MemoryReading& memory);

}  // namespace neurontrace
