// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/snapshot_cuts.h"

#include <fmt/format.h>

#include <cassert>

#include "aggregator/session/capture_request.h"

namespace neurontrace {

void SnapshotCuts::Remember(const CaptureRecord& record) {
  if (record.spec.mode != CaptureMode::kSnapshot || !record.begin) return;
  Cut& cut = cuts_[record.spec.timing.flight_recorder];
  if (cut.reference_ns < record.begin->reference_ns) {
    cut = {record.spec, record.begin->reference_ns};
  }
  assert(cut.reference_ns >= record.begin->reference_ns);
}

// A snapshot with an earlier one of other workers loses nothing, hence the check of both
// selections.
void SnapshotCuts::WarnOfEarlier(const CaptureBegin& begin, CaptureSession& snapshot) const {
  const CaptureSpec& spec = snapshot.record().spec;
  const auto earlier = cuts_.find(spec.timing.flight_recorder);
  if (spec.mode != CaptureMode::kSnapshot || earlier == cuts_.end()) return;
  const Cut& cut = earlier->second;
  if (cut.reference_ns >= begin.reference_ns || !CanOverlap(spec, cut.spec)) return;
  if (begin.reference_ns - cut.reference_ns >= spec.timing.last_ns) return;
  snapshot.Warn(
      fmt::format("a snapshot {:.1f} s before this one emptied the rings; earlier events are "
                  "missing from this one",
                  static_cast<double>(begin.reference_ns - cut.reference_ns) * 1e-9));
}

}  // namespace neurontrace
