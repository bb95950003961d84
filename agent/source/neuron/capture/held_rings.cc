// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/held_rings.h"

namespace neurontrace {

void HeldRings::BeginTrace(uint64_t realtime_ns) {
  begun_ns_ = realtime_ns;
  cores_.fill({});
}

uint64_t HeldRings::CoveredSince(uint32_t nc_idx, uint64_t first_id, uint64_t first_ns) const {
  if (nc_idx >= cores_.size()) return first_ns;
  const Core& core = cores_[nc_idx];
  // Nothing is missing if the ring still has the trace's first number, which is 0 or 1 depending on
  // the runtime, or the one after the last that was taken out.
  const bool whole = core.ids_end == 0 ? begun_ns_ != 0 && first_id <= 1 : first_id == core.ids_end;
  // Something was overwritten, so the ring reaches back to its earliest event only.
  if (!whole) return first_ns;
  return core.ids_end == 0 ? begun_ns_ : core.realtime_ns;
}

void HeldRings::TakeOut(uint32_t nc_idx, uint64_t ids_end, uint64_t realtime_ns) {
  if (nc_idx < cores_.size() && ids_end > 0) cores_[nc_idx] = {ids_end, realtime_ns};
}

}  // namespace neurontrace
