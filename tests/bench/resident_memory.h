// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace neurontrace {

// The process's resident memory in MiB: "VmRSS:" now, "VmHWM:" its highest since ResetPeakMemory.
inline double ResidentMib(std::string_view key) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kibibytes = 0;
    if (word == key && status >> kibibytes) return static_cast<double>(kibibytes) / 1024.0;
  }
  return 0;
}
inline void ResetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace neurontrace
