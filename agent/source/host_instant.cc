// SPDX-License-Identifier: Apache-2.0
#include "agent/source/host_instant.h"

#include <ctime>

namespace neurontrace {
namespace {

// Returns the clock in ns. clock_gettime(2) cannot fail for the clocks used here.
uint64_t ReadNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

HostInstant ReadHostInstant() {
  // Of a few tries the one that was interrupted least: all three lie between two readings of raw.
  HostInstant best;
  uint64_t best_width_ns = UINT64_MAX;
  for (int i = 0; i < 3; ++i) {
    HostInstant moment;
    const uint64_t begin_ns = ReadNs(CLOCK_MONOTONIC_RAW);
    moment.monotonic_ns = ReadNs(CLOCK_MONOTONIC);
    moment.realtime_ns = ReadNs(CLOCK_REALTIME);
    const uint64_t width_ns = ReadNs(CLOCK_MONOTONIC_RAW) - begin_ns;
    // The narrowest try has the smallest error, at most half of its width.
    if (width_ns >= best_width_ns) continue;
    best_width_ns = width_ns;
    moment.raw_ns = begin_ns + width_ns / 2;
    best = moment;
  }
  return best;
}

PlannedMoment PlanMoment(uint64_t host_raw_ns, const HostInstant& now) {
  const PlannedMoment at_once{
      .named = false, .monotonic_ns = now.monotonic_ns, .realtime_ns = now.realtime_ns};
  if (host_raw_ns == 0) return at_once;
  // The difference wraps around for the past and becomes negative as a signed number.
  const auto ahead_ns = static_cast<int64_t>(host_raw_ns - now.raw_ns);
  if (ahead_ns > static_cast<int64_t>(kPlannedAheadMaxNs)) return at_once;
  // The result would lie before the boot, where CLOCK_MONOTONIC has no value.
  if (ahead_ns < 0 && now.raw_ns - host_raw_ns >= now.monotonic_ns) return at_once;
  return {.named = true,
          .monotonic_ns = now.monotonic_ns + static_cast<uint64_t>(ahead_ns),
          .realtime_ns = now.realtime_ns + static_cast<uint64_t>(ahead_ns)};
}

}  // namespace neurontrace
