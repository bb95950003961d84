// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "validate/event_reader.h"
#include "validate/flow_points.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"
#include "validate/track_list.h"

namespace neurontrace {

// Checks what events say of arrows: that these are on slices and have an id and a direction.
// FlowPoints then follows them. One thread at a time.
class FlowCheck {
 public:
  FlowCheck(TraceFindingLog& log, TraceSummary& summary) : log_(log), points_(log, summary) {}

  // The flows of an event on a track, which begins or ends a slice or does not.
  void Take(const ReadEvent& event, const TrackList::State& track, uint64_t time_ns,
            bool has_slice);
  // A legacy event that is an end of an arrow and nothing else. Its category and name, which are
  // hashes, are a part of the flow's id.
  void TakeLegacy(const ReadEvent& event, uint64_t category, uint64_t name, uint64_t time_ns,
                  bool is_in_slice);
  // After the last event.
  void Finish() { points_.Finish(); }

 private:
  void TakeBound(const ReadLegacyEvent& event, uint64_t time_ns);

  TraceFindingLog& log_;
  FlowPoints points_;
};

}  // namespace neurontrace
