// SPDX-License-Identifier: Apache-2.0
#include "aggregator/reference/reference_timescale.h"

#include <fstream>

namespace neurontrace {

std::string RawOrigin() {
  std::string origin;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), origin);
  if (origin.empty()) return origin;
  std::ifstream offsets("/proc/self/timens_offsets");
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
