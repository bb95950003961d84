// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// One moment on three clocks of this host, in ns.
struct HostInstant {
  uint64_t raw_ns = 0;        // CLOCK_MONOTONIC_RAW, by which the aggregator names moments
  uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC, by which taps and timers wait
  uint64_t realtime_ns = 0;   // CLOCK_REALTIME, by which events are stamped
};

// Reads the clocks now. Any thread. The three values are of one moment, within the time that the
// readings took.
HostInstant ReadHostInstant();

// The moment at which something was ordered to happen, on the clocks that taps and events use.
struct PlannedMoment {
  bool named = false;  // by the aggregator; else it is when the order came
  uint64_t monotonic_ns = 0;
  uint64_t realtime_ns = 0;
};

// A moment that is further ahead results from a wrong model of this host's clock and is ignored, as
// if none was named.
inline constexpr uint64_t kPlannedAheadMaxNs = 10'000'000'000;

// Converts `host_raw_ns` (CLOCK_MONOTONIC_RAW; 0 if no moment is named) to the other clocks by
// their current differences, as all three run alike for so short a time. Pure. A moment in the past
// is converted too, unless the machine was not running then.
PlannedMoment PlanMoment(uint64_t host_raw_ns, const HostInstant& now);

}  // namespace neurontrace
