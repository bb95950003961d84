// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "validate/event_reader.h"
#include "validate/sequence_table.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"
#include "validate/track_list.h"

namespace neurontrace {

// Checks the values of counters: that their tracks are counters' and the values are there. One
// thread at a time.
class CounterCheck {
 public:
  CounterCheck(TraceFindingLog& log, TraceSummary& summary, TrackList& tracks)
      : log_(log), summary_(summary), tracks_(tracks) {}

  // An event that is a counter's.
  void TakeValue(TrackList::State& track, const ReadEvent& event);
  // The values that any event may have besides. May move all states of tracks.
  void TakeExtra(const ReadEvent& event, const TraceSequence& sequence);

 private:
  TraceFindingLog& log_;
  TraceSummary& summary_;
  TrackList& tracks_;
};

}  // namespace neurontrace
