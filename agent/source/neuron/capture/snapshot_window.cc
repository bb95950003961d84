// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/snapshot_window.h"

#include <algorithm>
#include <utility>

namespace neurontrace {

void SnapshotWindow::HandleDocument(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns,
                                    uint64_t ids_end, uint64_t fetched_ns) {
  if (nc_idx >= seen_.size()) return;
  if (!std::exchange(seen_[nc_idx], true)) {
    const uint64_t since_ns = rings_->CoveredSince(nc_idx, first_id, first_ns);
    covered_since_ns_ = std::max(covered_since_ns_.value_or(0), since_ns);
  }
  rings_->TakeOut(nc_idx, ids_end, fetched_ns);
}

uint64_t SnapshotWindow::reaches_back_ns() const {
  // Without any event the rings were empty, and nothing is missing since the trace began.
  const uint64_t since_ns = covered_since_ns_.value_or(rings_->begun_ns());
  if (since_ns == 0 || since_ns >= cut_ns_) return 0;
  const uint64_t back_ns = cut_ns_ - since_ns;
  return last_ns_ == 0 ? back_ns : std::min(back_ns, last_ns_);
}

}  // namespace neurontrace
