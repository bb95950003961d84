// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/reference_timescale.h"

#include <fstream>

namespace neurontrace {

// Reads the boot id of the kernel (random(4)), then the offset of the time namespace.
// CLOCK_MONOTONIC_RAW has the offset of "monotonic".
std::string RawOrigin() {
  std::string origin;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), origin);
  if (origin.empty()) return origin;
  std::ifstream offsets("/proc/self/timens_offsets");
  // Each line has the name of a clock, seconds and nanoseconds.
  std::string clock;
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  while (offsets >> clock >> seconds >> nanoseconds) {
    if (clock != "monotonic" || (seconds == 0 && nanoseconds == 0)) continue;
    origin += "/" + std::to_string(seconds) + "," + std::to_string(nanoseconds);
  }
  return origin;
}

}  // namespace neurontrace
