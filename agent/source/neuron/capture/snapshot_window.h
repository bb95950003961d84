// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "lib/trace/limits.h"

namespace neurontrace {

// What is known of the rings of one worker that are held: since when, and what was taken out of
// them by snapshots. With it a snapshot tells a core that was silent from one whose ring had
// overwritten. A plain value; outlives the captures that use it.
class HeldRings {
 public:
  // A trace that holds begins, with empty rings.
  void BeginTrace(uint64_t realtime_ns);
  // Of a core nothing is missing from then on; of one with `first_id` as the lowest number in the
  // rings, whose time is `first_ns`.
  uint64_t CoveredSince(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns) const;
  // Its events below `ids_end` were taken out at this time.
  void TakeOut(uint32_t nc_idx, uint64_t ids_end, uint64_t realtime_ns);
  uint64_t begun_ns() const { return begun_ns_; }  // realtime; 0: not known

 private:
  struct Core {
    uint64_t ids_end = 0;  // 0: nothing was taken yet
    uint64_t realtime_ns = 0;
  };
  uint64_t begun_ns_ = 0;
  std::array<Core, limits::kCoresPerWorkerMax> cores_ = {};
};

// Which events belong to a snapshot, and how far back it reaches. Times are of the host's realtime,
// as those of events. A plain value.
class SnapshotWindow {
 public:
  // Of the `last_ns` before the cut, or, with 0, of all there is. `rings` outlives it.
  SnapshotWindow(HeldRings& rings, uint64_t cut_ns, uint64_t last_ns)
      : rings_(&rings), cut_ns_(cut_ns), last_ns_(last_ns) {}

  bool Contains(uint64_t timestamp_ns) const {
    return timestamp_ns <= cut_ns_ &&
           (last_ns_ == 0 || last_ns_ >= cut_ns_ || timestamp_ns >= cut_ns_ - last_ns_);
  }
  // A document of one core: its lowest number and time, and one more than its highest number.
  void TakeDocument(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns, uint64_t ids_end,
                    uint64_t fetched_ns);
  // From the cut back to where the first core begins to be whole; 0: not known.
  uint64_t reaches_back_ns() const;

 private:
  HeldRings* rings_;
  uint64_t cut_ns_;
  uint64_t last_ns_;
  std::array<bool, limits::kCoresPerWorkerMax> seen_ = {};
  std::optional<uint64_t> covered_since_ns_;  // of the core of which that is last
};

}  // namespace neurontrace
