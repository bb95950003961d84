// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A wider bound gives no information that probes do not give better.
inline constexpr double kUtcBoundMaxNs = 1e9;

// Returns the interval that contains UTC at a snapshot, given that `source` promises CLOCK_REALTIME
// to be within `bound_ns` of UTC. Half the width of the snapshot's bracket is added. Returns
// nothing if the bound is negative, not a number or too wide. Pure.
inline std::optional<UtcReading> UtcWithin(UtcSource source, const ClockSnapshot& snapshot,
                                           double bound_ns) {
  if (!(bound_ns >= 0) || bound_ns > kUtcBoundMaxNs) return std::nullopt;
  // REALTIME was read somewhere within the bracket, so its time on raw is exact to half of the
  // width.
  const uint64_t half_ns = (snapshot.raw_end_ns - snapshot.raw_begin_ns + 1) / 2;
  const uint64_t within_ns = static_cast<uint64_t>(std::ceil(bound_ns)) + half_ns;
  // The interval would begin before the epoch, which an unsigned number cannot express.
  if (snapshot.realtime_ns < within_ns) return std::nullopt;
  return UtcReading{.source = source,
                    .raw_ns = snapshot.raw_begin_ns + half_ns,
                    .utc_earliest_ns = snapshot.realtime_ns - within_ns,
                    .utc_latest_ns = snapshot.realtime_ns + within_ns};
}

}  // namespace neurontrace
