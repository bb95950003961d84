// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "agent/source/neuron/capture/held_rings.h"
#include "lib/trace/limits.h"

namespace neurontrace {

// Decides which events belong to a snapshot, and computes how far back it reaches. Times are
// CLOCK_REALTIME of the host, as those of events. A plain value.
class SnapshotWindow {
 public:
  // Of the `last_ns` before the cut; 0: of everything held. `rings` outlives it.
  SnapshotWindow(HeldRings& rings, uint64_t cut_ns, uint64_t last_ns)
      : rings_(&rings), cut_ns_(cut_ns), last_ns_(last_ns) {}

  bool Contains(uint64_t timestamp_ns) const {
    return timestamp_ns <= cut_ns_ &&
           (last_ns_ == 0 || last_ns_ >= cut_ns_ || timestamp_ns >= cut_ns_ - last_ns_);
  }
  // Takes a document of one core: its lowest number and earliest time, and one more than its
  // highest number.
  void HandleDocument(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns, uint64_t ids_end,
                      uint64_t fetched_ns);
  // Returns the time from the cut back to where the last core begins to be complete; 0: not known.
  uint64_t reaches_back_ns() const;

 private:
  HeldRings* rings_;
  // When the snapshot is cut, realtime, and how much before that belongs to it; 0: everything.
  uint64_t cut_ns_;
  uint64_t last_ns_;
  // Cores that have given a document; the first one decides how far back its core reaches.
  std::array<bool, limits::kCoresPerWorkerMax> seen_ = {};
  std::optional<uint64_t> covered_since_ns_;  // the latest over all cores
};

}  // namespace neurontrace
