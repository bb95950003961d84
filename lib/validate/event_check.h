// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "lib/validate/flow_points.h"
#include "lib/validate/sequence_table.h"
#include "lib/validate/slice_stack.h"
#include "lib/validate/trace_finding.h"
#include "lib/validate/trace_message.h"
#include "lib/validate/trace_report.h"
#include "lib/validate/track_list.h"

namespace neurontrace {

// Checks the events of a trace in the order of the file: that slices nest, that ends have begins,
// that counters have values, that flows are on slices, and that references resolve. Each check is a
// TraceCheck; docs/formats/validate.md explains it. Used by TraceValidator; one thread at a time.
class EventCheck {
 public:
  // All of them must outlive this.
  EventCheck(TraceFindingLog& log, TraceSummary& summary, TrackList& tracks)
      : log_(log), summary_(summary), tracks_(tracks), flows_(log, summary) {}

  // Called if the file claims to be written by neurontrace: its arguments are checked too.
  void TrustArguments() { are_arguments_known_ = true; }

  // Checks a TrackEvent of `sequence` at `time_ns` of the trace's clock. Without a time it is
  // dropped, which is logged. Throws protozero::exception if the event is malformed.
  void Take(std::string_view event, const TraceSequence& sequence, std::optional<uint64_t> time_ns);
  // Checks flows and slices that never end. Called once, after the last event.
  void Finish();

 private:
  using Track = TrackList::State;
  // The values of arguments that neurontrace writes.
  struct TrackText {
    // The length that the event claims for its slice.
    std::optional<uint64_t> duration_ns;
    // The number of lost events that an instant reports.
    std::optional<uint64_t> events;
    // The exporter has written the slice without its length, so that `duration_ns` is not the
    // slice's (docs/formats/pftrace.md).
    bool is_squeezed = false;
  };
  // The name and category of an event.
  struct Names {
    uint64_t name = 0;  // hashes
    uint64_t category = 0;
    std::string_view shown;  // as the file has it
  };

  // Returns true if the event's track or time is given in a way that is not checked, which is
  // logged.
  bool IsUnchecked(const TraceSequence& sequence, uint64_t uuid);
  // Returns an interned text, or nullptr, which is logged.
  const InternedText* Resolve(const TraceSequence& sequence, uint32_t table, uint64_t iid,
                              std::string_view what);
  // Returns the name and category of the current event; 0 for none.
  Names NamesOf(const TraceSequence& sequence);
  // Returns the hash of the event's categories, joined as Perfetto does.
  uint64_t CategoryOf(const TraceSequence& sequence);
  // Counts the arguments of the current event, resolves their names, and returns known ones.
  TrackText ReadArguments(const TraceSequence& sequence);
  // Handles the event by its type, once its track is known. Returns false if there is no slice or
  // instant to which a flow could be bound.
  bool HandleByType(Track& track, uint64_t type, const TraceSequence& sequence, uint64_t time_ns);
  // Opens a slice on the track.
  void HandleBegin(Track& track, const Names& names, const TrackText& texts, uint64_t time_ns);
  // Returns false if it ends nothing.
  bool HandleEnd(Track& track, const Names& names, const TrackText& texts, uint64_t time_ns);
  // Checks the value and track of a counter's event.
  void HandleCounter(Track& track);
  // Checks the counter values that any event may have in addition. May move all tracks.
  void HandleExtraCounters(const TraceSequence& sequence);
  // Compares the number of extra values with that of their tracks: of the event, or of the
  // sequence. The tags select the kind; `default_uuids` is the number of tracks of the sequence.
  void CheckExtraCounters(uint32_t value_tag, uint32_t uuid_tag, uint64_t default_uuids);
  // Adds the event's flows at its slice or instant; without one they are findings.
  void HandleFlows(const Track& track, uint64_t time_ns, bool has_slice);
  // Returns false if the track's slices are no longer followed; otherwise settles those that ended.
  bool IsInOrder(Track& track, uint64_t time_ns);
  // Gives up checking how the track's slices nest.
  void StopFollowing(Track& track);
  // Removes slices that have ended before `time_ns`, and logs those that were cut short.
  void Settle(Track& track, uint64_t time_ns);
  // Logs a slice that never ends, at the position of its begin.
  void ReportOpen(const Track& track, const SliceStack::Slice& slice);

  TraceFindingLog& log_;
  TraceSummary& summary_;
  TrackList& tracks_;
  // Must follow `log_` and `summary_`, to which it refers.
  FlowPoints flows_;
  // A pointer into these is valid until the next event.
  TraceMessage event_, legacy_, argument_;  // the current ones; reused to save memory allocations
  std::string joined_;                      // categories of the current event
  // By their hashes, so that slices that never end can be named: the first kNamesMax.
  absl::flat_hash_map<uint64_t, std::string> names_;
  size_t open_slices_ = 0;  // on all tracks
  bool are_arguments_known_ = false;
};

}  // namespace neurontrace
