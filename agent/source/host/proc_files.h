// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// What /proc/stat and /proc/meminfo say (proc_stat(5), proc_meminfo(5)). Pure functions of the
// text, which is checked as anything from outside is.
namespace neurontrace {

// Time of one processor since the machine began, in clock ticks; sums saturate.
struct CpuTimes {
  static constexpr uint32_t kAverage = UINT32_MAX;  // the line "cpu": all of them

  uint32_t cpu = kAverage;
  uint64_t total = 0;  // guests' time is in the user's already, and counts once
  uint64_t idle = 0;   // and waiting for a disk
  friend bool operator==(const CpuTimes&, const CpuTimes&) = default;
};

// The lines "cpu" and "cpuN" that /proc/stat begins with, in their order; further lines are not
// looked at. INVALID_ARGUMENT where one of them is not made as it should be, comes twice, or none
// is there; RESOURCE_EXHAUSTED beyond limits::kHostCpusMax processors.
absl::StatusOr<std::vector<CpuTimes>> ParseCpuTimes(std::string_view proc_stat);

// The share of the time between two readings of one processor in which it was not idle, in percent,
// rounded to hundredths. Nothing if no time went by. Counters that run backwards, as those of
// waiting and of a processor that was away do, stand still.
struct CpuShare {
  bool known = false;
  double percent = 0;
};
CpuShare ShareBetween(const CpuTimes& before, const CpuTimes& after);

struct MemoryReading {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // MemTotal less MemAvailable; at most total_bytes
  friend bool operator==(const MemoryReading&, const MemoryReading&) = default;
};

// INVALID_ARGUMENT where MemTotal or MemAvailable is missing, is no number of kB, or is too large.
absl::StatusOr<MemoryReading> ParseMemory(std::string_view proc_meminfo);
// In percent of the total, rounded to hundredths; 0 of nothing.
double PercentUsed(const MemoryReading& memory);

}  // namespace neurontrace
