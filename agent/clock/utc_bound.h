// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A promise wider than this says nothing that a probe does not say better.
inline constexpr double kUtcBoundMaxNs = 1e9;

// CLOCK_REALTIME of a snapshot is UTC to within `bound_ns`, as `source` promises; nullopt where
// that is no bound or too wide. The bracket of the snapshot comes on top.
inline std::optional<UtcReading> UtcWithin(UtcSource source, const ClockSnapshot& snapshot,
                                           double bound_ns) {
  if (!(bound_ns >= 0) || bound_ns > kUtcBoundMaxNs) return std::nullopt;
  const uint64_t half_ns = (snapshot.raw_end_ns - snapshot.raw_begin_ns + 1) / 2;
  const uint64_t within_ns = static_cast<uint64_t>(std::ceil(bound_ns)) + half_ns;
  if (snapshot.realtime_ns < within_ns) return std::nullopt;
  return UtcReading{.source = source,
                    .raw_ns = snapshot.raw_begin_ns + half_ns,
                    .utc_earliest_ns = snapshot.realtime_ns - within_ns,
                    .utc_latest_ns = snapshot.realtime_ns + within_ns};
}

}  // namespace neurontrace
