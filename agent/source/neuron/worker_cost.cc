// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/worker_cost.h"

#include <algorithm>

namespace neurontrace {

void WorkerCost::Observe(uint64_t now_ns, uint64_t tap_ns, uint64_t bytes) {
  if (!seen_ || now_ns < seen_ns_) {
    seen_ = true;
    seen_ns_ = marked_ns_ = now_ns;
    tap_ns_ = tap_ns;
    marked_ = {core_ns_, bytes};
    return;
  }
  // One thread cannot use more than the time that passed, whatever the tap claims.
  if (tap_ns > tap_ns_) core_ns_ += std::min(tap_ns - tap_ns_, now_ns - seen_ns_);
  tap_ns_ = tap_ns;
  seen_ns_ = now_ns;
  const uint64_t ns = now_ns - marked_ns_;
  if (ns < kRecentNs) return;
  const double seconds = static_cast<double>(ns) * 1e-9;
  // Bytes go with the captures that are forgotten.
  const uint64_t more = bytes > marked_.bytes ? bytes - marked_.bytes : 0;
  recent_ = {static_cast<double>(core_ns_ - marked_.core_ns) * 1e-3 / seconds,
             static_cast<double>(more) / seconds};
  marked_ns_ = now_ns;
  marked_ = {core_ns_, bytes};
}

}  // namespace neurontrace
