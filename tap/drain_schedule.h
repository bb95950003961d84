// SPDX-License-Identifier: Apache-2.0
// When to fetch each core next: between 5 and 200 ms, shorter while fetches come back full, longer
// while they come back thin, and never so long that a core's ring could wrap at a rate far above
// what runtimes produce. Pure; one thread.
#pragma once

#include <cstdint>

#include "tap/buffer_format.h"
#include "tap/tap_clock.h"

namespace neurontrace {

class DrainSchedule {
 public:
  static constexpr uint64_t kIntervalMinNs = 5 * kNsPerMs;
  static constexpr uint64_t kIntervalMaxNs = 200 * kNsPerMs;
  static constexpr uint64_t kIntervalFirstNs = 20 * kNsPerMs;
  // A core's rate that the longest interval must still survive without its ring wrapping.
  static constexpr uint64_t kSurvivedEventsPerSecond = 200'000;

  // All of `cores` are due at `now`. `ring_events` is the capacity of a core's ring in the runtime.
  void Begin(uint64_t now_ns, uint32_t cores, uint64_t ring_events);

  // A core was drained: `events` came in all, where one fetch brings at most `events_per_fetch`.
  void Drained(uint32_t core, uint64_t now_ns, uint64_t events, uint64_t events_per_fetch);

  // A core could not be drained for want of room: look again soon, whatever its rate.
  void PutOff(uint32_t core, uint64_t now_ns);

  // Whether a core is due, or near enough that waking up once more for it would be waste.
  bool IsDue(uint32_t core, uint64_t now_ns) const;

  // The earliest time any core is due; kNeverNs without cores.
  uint64_t NextDueNs() const;

  uint64_t interval_ns(uint32_t core) const { return cores_[core].interval_ns; }

 private:
  struct Core {
    uint64_t due_ns;
    uint64_t interval_ns;
  };

  uint32_t count_ = 0;
  uint64_t interval_max_ns_ = kIntervalMaxNs;
  Core cores_[kTapMaxCores] = {};
};

}  // namespace neurontrace
