// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "aggregator/session/capture_session.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Remembers the last snapshot of each flight recorder, because a snapshot empties the rings of the
// workers it selects and the next one may reach further back than that. A plain value; one
// sequence.
class SnapshotCuts {
 public:
  // Remembers the snapshot if it has begun and no later one is known. Ignores other captures.
  void Remember(const CaptureRecord& record);
  // Adds a warning to a snapshot that begins at `begin` if an earlier one has taken events out of
  // the rings that it reaches back to.
  void WarnOfEarlier(const CaptureBegin& begin, CaptureSession& snapshot) const;
  // Forgets the snapshots of one flight recorder, or of those that do not run any more.
  void Forget(const CaptureId& flight_recorder) { cuts_.erase(flight_recorder); }
  template <typename IsRunning>
  void KeepOnly(const IsRunning& is_running) {
    std::erase_if(cuts_, [&](const auto& cut) { return !is_running(cut.first); });
  }

 private:
  struct Cut {
    CaptureSpec spec;
    uint64_t reference_ns = 0;
  };

  std::map<CaptureId, Cut> cuts_;  // by flight recorder
};

}  // namespace neurontrace
