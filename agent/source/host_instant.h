// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// One moment on three clocks of this host.
struct HostInstant {
  uint64_t raw_ns = 0;        // CLOCK_MONOTONIC_RAW, by which the aggregator names moments
  uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC, by which taps and timers wait
  uint64_t realtime_ns = 0;   // CLOCK_REALTIME, by which events are stamped
};

// Now. Any thread.
HostInstant ReadHostInstant();

// When something was told to happen, as it was when that was told.
struct PlannedMoment {
  bool named = false;  // by the aggregator; else it is when the order came
  uint64_t monotonic_ns = 0;
  uint64_t realtime_ns = 0;
};

// A moment further ahead comes from a wrong model of this host's clock: then as if none was named.
inline constexpr uint64_t kPlannedAheadMaxNs = 10'000'000'000;

// `host_raw_ns` on the other clocks, which run with it for so short a time; 0: none is named.
PlannedMoment PlanMoment(uint64_t host_raw_ns, const HostInstant& now);

}  // namespace neurontrace
