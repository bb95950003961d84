// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/suspension_tracker.h"

#include <algorithm>
#include <utility>

namespace neurontrace {

// The command's time counts until the tap's record has a better one (TraceStopped).
void SuspensionTracker::Suspend(const CaptureId& other, uint64_t now_ns) {
  if (other == other_ && since_ns_) return;
  // From one to the next, without a trace of its own in between.
  if (since_ns_ && !other_.empty()) {
    if (now_ns > *since_ns_) due_.push_back({other_, *since_ns_, now_ns});
    since_ns_.reset();
  }
  other_ = other;
  reported_ns_ = 0;
  if (!since_ns_) since_ns_ = now_ns;
}

Suspension SuspensionTracker::TraceStopped(uint64_t at_ns) {
  // The tap's time is more exact than that of the command, unless a time has been reported already.
  if (!since_ns_ || reported_ns_ == 0 || at_ns < *since_ns_) since_ns_ = at_ns;
  return {other_, *since_ns_, std::max(reported_ns_, *since_ns_)};
}

std::optional<Suspension> SuspensionTracker::TraceStarted(uint64_t at_ns) {
  reported_ns_ = 0;
  const std::optional<uint64_t> since_ns = std::exchange(since_ns_, std::nullopt);
  if (!since_ns || at_ns <= *since_ns) return std::nullopt;
  return Suspension{other_, *since_ns, at_ns};
}

std::vector<Suspension> SuspensionTracker::TakeDue(uint64_t now_ns, bool is_last) {
  // The whole suspension is reported each time: lists of suspensions keep the union of the reports
  // (AddSuspension).
  const uint64_t from_ns = std::max(since_ns_.value_or(0), reported_ns_);
  if (since_ns_ && now_ns > from_ns && (is_last || now_ns - from_ns >= kReportIntervalNs)) {
    due_.push_back({other_, *since_ns_, now_ns});
    reported_ns_ = now_ns;
  }
  return std::exchange(due_, {});
}

}  // namespace neurontrace
