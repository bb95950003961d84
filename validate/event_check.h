// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "validate/counter_check.h"
#include "validate/event_kind.h"
#include "validate/event_reader.h"
#include "validate/flow_check.h"
#include "validate/sequence_table.h"
#include "validate/slice_stack.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"
#include "validate/track_list.h"

namespace neurontrace {

// Checks the events of a trace, in the order of the file: that slices nest, that ends have begins,
// that what they name is there. One thread at a time.
class EventCheck {
 public:
  EventCheck(TraceFindingLog& log, TraceSummary& summary, TrackList& tracks)
      : log_(log),
        summary_(summary),
        tracks_(tracks),
        counters_(log, summary, tracks),
        flows_(log, summary) {}

  // The file says that neurontrace wrote it: what its arguments say is checked, too.
  void TrustArguments() { are_arguments_known_ = true; }
  void AllowExtensions() { are_extensions_described_ = true; }

  // Without a time an event is dropped. Throws protozero::exception.
  void Take(std::string_view event, const TraceSequence& sequence, std::optional<uint64_t> time_ns);
  void Finish();

 private:
  // What the arguments of an event say.
  struct Said {
    std::optional<uint64_t> duration_ns;
    std::optional<uint64_t> events;
    bool is_squeezed = false;
  };
  struct Names {
    uint64_t name = 0;
    uint64_t category = 0;
    std::string_view words;  // as the file has them
  };

  Names NamesOf(const TraceSequence& sequence);
  uint64_t CategoryOf(const TraceSequence& sequence);
  Said TakeArguments(const TraceSequence& sequence);
  const InternTable::Text* Resolve(const TraceSequence& sequence, const InternTable& table,
                                   uint64_t iid, std::string_view what);
  void TakeBegin(TrackList::State& track, const Names& names, const Said& said, uint64_t time_ns);
  // False: it ends nothing.
  bool TakeEnd(TrackList::State& track, const Names& names, const Said& said, uint64_t time_ns);
  void TakeInstant(TrackList::State& track, const Names& names, const Said& said, uint64_t time_ns);
  // Of `kind`, on the track that it is to be on.
  void TakeOn(TrackList::State& track, EventKind kind, const TraceSequence& sequence,
              uint64_t time_ns);
  // False: its track is not known here, or there is none.
  bool IsPlaced(EventKind kind, const TraceSequence& sequence);
  // False: it is dropped.
  bool TakeComplete(TrackList::State& track, const Names& names, uint64_t time_ns);
  bool HasRoom(TrackList::State& track, const SliceStack& open, const Names& names);
  bool IsInSlice(TrackList::State& track, uint64_t time_ns);
  // False: how the track's slices nest is no longer followed.
  bool IsInOrder(TrackList::State& track, uint64_t time_ns);
  void GiveUp(TrackList::State& track);
  // Before an event that is on slices.
  void Settle(TrackList::State& track, uint64_t time_ns);
  SliceStack& OpenOn(TrackList::State& track);
  void ReportOpen(const TrackList::State& track, const SliceStack::Slice& slice);

  TraceFindingLog& log_;
  TraceSummary& summary_;
  TrackList& tracks_;
  CounterCheck counters_;
  FlowCheck flows_;
  ReadEvent event_;
  std::string joined_;  // categories
  // By their hashes, cleaned, so that slices that never end can be named: the first kNamesMax.
  absl::flat_hash_map<uint64_t, std::string> names_;
  std::vector<SliceStack> open_;  // by TrackList::State::slices
  size_t open_slices_ = 0;        // on all of them
  bool are_arguments_known_ = false;
  bool are_extensions_described_ = false;
};

}  // namespace neurontrace
