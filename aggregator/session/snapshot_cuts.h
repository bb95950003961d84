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

// Remembers the latest snapshot of each flight recorder. A snapshot empties the rings of the
// workers that it selects, and the next one may reach back further than that. A plain value; used
// on the coordinator's sequence only.
class SnapshotCuts {
 public:
  // Notes a snapshot that has begun, unless a later one is known. Ignores other captures.
  void Remember(const CaptureRecord& record);
  // Adds a warning to a snapshot that begins at `begin` if an earlier one has emptied the rings
  // within the time that it reaches back to.
  void WarnOfEarlier(const CaptureBegin& begin, CaptureSession& snapshot) const;
  // Forget the snapshots of one flight recorder, or of all that no longer run.
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
