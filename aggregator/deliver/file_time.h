// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/time_units.h"

namespace neurontrace {

// Nanoseconds since the Unix epoch of a file's time as a volume tells it, which may be any: 0 for
// one before, UINT64_MAX for one after those that there are.
constexpr uint64_t FileTimeNs(int64_t seconds, uint64_t nanoseconds) {
  if (seconds < 0) return 0;
  const auto whole = static_cast<uint64_t>(seconds);
  if (whole > UINT64_MAX / kNsPerSecond) return UINT64_MAX;
  return AddSaturating(whole * kNsPerSecond, nanoseconds);
}

}  // namespace neurontrace
