// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "lib/trace/limits.h"

namespace neurontrace {

// What is known about the held rings of one worker: since when they are held, and what snapshots
// have taken out of them. With it a snapshot distinguishes a core that was idle from one whose ring
// was overwritten. A plain value; outlives the captures that use it.
class HeldRings {
 public:
  // Handles the begin of a trace that holds its events, with empty rings.
  void BeginTrace(uint64_t realtime_ns);
  // Returns since when nothing is missing of a core (realtime), given `first_id`, the lowest number
  // in its ring, and `first_ns`, the time of that event.
  uint64_t CoveredSince(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns) const;
  // Records that the core's events below `ids_end` were taken out at this time.
  void TakeOut(uint32_t nc_idx, uint64_t ids_end, uint64_t realtime_ns);
  uint64_t begun_ns() const { return begun_ns_; }  // realtime; 0: not known

 private:
  struct Core {
    // One more than the highest number that was taken out, and when; 0: nothing was yet.
    uint64_t ids_end = 0;
    uint64_t realtime_ns = 0;
  };
  // When the trace that holds began, realtime; 0: not known.
  uint64_t begun_ns_ = 0;
  std::array<Core, limits::kCoresPerWorkerMax> cores_ = {};
};

}  // namespace neurontrace
