// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/time_units.h"

namespace neurontrace {

// Returns a file's time in nanoseconds since the Unix epoch. A volume may report any time: one
// before the epoch becomes 0, one beyond the type's range UINT64_MAX. Used for the times that List
// returns, by which unreadable claims are judged. Pure.
constexpr uint64_t FileTimeNs(int64_t seconds, uint64_t nanoseconds) {
  if (seconds < 0) return 0;
  const auto whole = static_cast<uint64_t>(seconds);
  if (whole > UINT64_MAX / kNsPerSecond) return UINT64_MAX;
  return AddSaturating(whole * kNsPerSecond, nanoseconds);
}

}  // namespace neurontrace
