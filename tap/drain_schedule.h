// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/base/fill_rate.h"
#include "tap/buffer_format.h"
#include "tap/tap_clock.h"

// Decides which core to fetch next, and when. A core is due every 5 to 200 ms: sooner while fetches
// come back full, later while they come back thin, and never so late that its ring could wrap at a
// rate far above that of real runtimes. Of the cores that are due, the one whose ring will
// overwrite first is fetched first. Every second fetch goes to the core that has waited longest
// past its time, so that no core waits for more than two fetches per core, however busy another is.
// Pure; times are ns of CLOCK_MONOTONIC. One thread.
namespace neurontrace::tap {

class DrainSchedule {
 public:
  static constexpr uint64_t kIntervalMinNs = 5 * kNsPerMs;
  static constexpr uint64_t kIntervalMaxNs = 200 * kNsPerMs;
  static constexpr uint64_t kIntervalFirstNs = 20 * kNsPerMs;
  // The rate of a core at which its ring must not wrap within the longest interval.
  static constexpr uint64_t kSurvivedEventsPerSecond = 200'000;
  // A core that has waited this long past its time gets the next alternate fetch.
  static constexpr uint64_t kOverdueNs = 50 * kNsPerMs;
  static constexpr uint32_t kNoSlot = UINT32_MAX;
  // The longest estimate of NsToOverwrite.
  static constexpr uint64_t kLongestNs = 3600 * kNsPerSecond;

  // Starts over: all `cores` are due at `now_ns`, with empty rings. `ring_events` is the capacity
  // of a core's ring in the runtime; a fetch returns at most about `events_per_fetch`.
  void Begin(uint64_t now_ns, uint32_t cores, uint64_t ring_events, uint64_t events_per_fetch);

  // Returns the core to fetch now, or kNoSlot if none is due, nor so near that a separate wake-up
  // for it would be a waste. Each call counts as a fetch.
  uint32_t Next(uint64_t now_ns);

  // Records a fetch of a core that began at `fetched_ns` and ended at `now_ns`. `more`: the fetch
  // came back full, so that more may wait; the core stays due.
  void Drained(uint32_t core, uint64_t fetched_ns, uint64_t now_ns, uint64_t events, bool more);

  // Records that a core could not be fetched, because of an error or no room: it is due again soon,
  // whatever its rate.
  void PutOff(uint32_t core, uint64_t now_ns);

  // Returns the estimated time until the core's ring overwrites events that were not fetched; 0 if
  // its rate is unknown.
  uint64_t NsToOverwrite(uint32_t core, uint64_t now_ns) const;
  double events_per_second(uint32_t core) const { return cores_[core].fill.per_second(); }

  // Returns the earliest time at which any core is due; kNeverNs without cores.
  uint64_t NextDueNs() const;

  uint64_t interval_ns(uint32_t core) const { return cores_[core].interval_ns; }

 private:
  // A core's slot in the schedule.
  struct Core {
    uint64_t due_ns = 0;
    uint64_t interval_ns = 0;
    uint64_t events = 0;  // fetched since it was found due
    FillRate fill;
  };

  // Returns whether the core is due, or nearly due.
  bool IsDue(uint32_t core, uint64_t now_ns) const;

  uint32_t count_ = 0;
  bool owed_ = false;              // the next fetch is for the core that has waited longest
  uint64_t ring_events_ = 0;       // capacity of one core's ring in the runtime
  uint64_t events_per_fetch_ = 0;  // at most about this many are returned
  uint64_t interval_max_ns_ = kIntervalMaxNs;
  Core cores_[kTapMaxCores] = {};
};

}  // namespace neurontrace::tap
