// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/validate/trace_finding.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

// The open slices of one track, and those that ended while slices in them were open, as Perfetto's
// importer keeps them (src/trace_processor/importers/common/slice_tracker.cc). Begin and an end of
// the innermost slice take constant time; other ends search from the inside. Times must not
// decrease. Memory is proportional to the slices in it. One thread at a time.
class SliceStack {
 public:
  // The end of a slice that has not ended.
  static constexpr uint64_t kOpen = UINT64_MAX;

  // Times are ns of the trace's clock.
  struct Slice {
    uint64_t start_ns = 0;
    uint64_t end_ns = kOpen;
    uint64_t name = 0;                    // a hash; 0: none
    uint64_t category = 0;                // a hash; 0: none
    TracePosition at;                     // of its begin, and of its end once it has ended
    std::optional<uint64_t> duration_ns;  // from its arguments
  };
  // A slice that had ended while `slices` in it were open, and still were at the next event.
  struct Cut {
    Slice slice;
    // The number of open slices that were removed with it.
    size_t slices = 0;
  };

  // Removes slices that have ended before an event at `time_ns`. Called again while it returns a
  // value: the open slices that were cut short are removed too.
  std::optional<Cut> Settle(uint64_t time_ns);
  // Opens a slice in the innermost one.
  void Begin(const Slice& slice) { slices_.push_back(slice); }
  // Ends the innermost open slice that fits these names and returns it as it was; nullopt if none
  // fits. An end without a name fits any slice, and a slice without a name any end; an end with a
  // category fits only slices of this category.
  std::optional<Slice> End(uint64_t name, uint64_t category, uint64_t time_ns, TracePosition at);
  // Forgets all slices.
  void Clear();

  // Returns the number of slices with those that have ended, and without them.
  size_t size() const { return slices_.size(); }
  size_t open() const { return slices_.size() - ended_; }
  // From the outermost to the innermost, including those that have ended.
  const std::list<Slice>& slices() const { return slices_; }

 private:
  // From the outermost to the innermost; a list, so that removing one is cheap and others keep
  // their place.
  std::list<Slice> slices_;
  size_t ended_ = 0;  // of these
};

// The tracks of a trace, as they are described and used. Filled by TraceValidator (descriptors) and
// EventCheck (events); the indexes of tracks never change. One thread at a time.
class TrackList {
 public:
  // A track with the state that the checks need.
  struct State {
    TraceTrack track;
    // 0 and false for a track at the top.
    uint64_t parent_uuid = 0;
    bool has_parent = false;
    bool may_merge = false;  // with siblings of its name
    TracePosition first_at;  // of the descriptor, or the first event
    // For EventCheck.
    bool is_unfollowed = false;  // how its slices nest is no longer checked
    // The time of the last event that was in order.
    uint64_t last_ns = 0;
    SliceStack open;
  };

  // `log` must outlive this.
  explicit TrackList(TraceFindingLog& log) : log_(log) {}

  // Reads a TrackDescriptor, and logs what is wrong with it. A second descriptor of a track is
  // ignored, as in Perfetto. Throws protozero::exception.
  void TakeDescriptor(std::string_view descriptor);
  // Returns the track of an event, adding it if it is not described; nullptr if there are too many
  // tracks. Pointers are valid until the next call.
  State* ForEvent(uint64_t uuid);

  // Checks, after the last packet, parents, tracks that were never described, and siblings that
  // merge.
  void Finish();
  // Moves the tracks out, with parents as indexes. Called last.
  std::vector<TraceTrack> TakeTracks();
  size_t size() const { return tracks_.size(); }
  // Returns all tracks in the order in which they were first seen.
  std::vector<State>& states() { return tracks_; }

 private:
  // The relevant fields of a TrackDescriptor. Its track has no uuid yet, and no counts.
  struct Descriptor {
    std::optional<uint64_t> uuid;
    uint64_t parent_uuid = 0;
    // The process's or thread's numbers are present.
    bool has_pid = false, has_tid = false;
    // Values of sibling_merge_behavior and child_ordering, not checked yet.
    uint64_t merge = 0;
    uint64_t child_ordering = 0;
    TraceTrack track;
  };

  // Reads the fields of a descriptor. Throws protozero::exception.
  static Descriptor Read(std::string_view bytes);
  // Returns whether the descriptor counts; otherwise the reason is logged.
  bool IsSound(const Descriptor& descriptor);
  // Checks that no other track is the same process or thread.
  void CheckIds(const Descriptor& descriptor);
  // Returns a known track, or nullptr. Add adds one; nullptr if there are too many.
  State* Find(uint64_t uuid);
  State* Add(uint64_t uuid);
  // Checks that the track hangs from a described track, and in no cycle.
  void CheckAncestors(const State& state);
  // Reports siblings of the same name that Perfetto's interface may merge.
  void CheckMerging();

  TraceFindingLog& log_;
  // In the order of the file; an index is a track's number in the report.
  std::vector<State> tracks_;
  // Index in `tracks_`.
  absl::flat_hash_map<uint64_t, uint32_t> by_uuid_;
  // The uuid of the track that has a pid, or a pid and tid.
  absl::flat_hash_map<std::pair<int64_t, std::optional<int64_t>>, uint64_t> by_ids_;
};

}  // namespace neurontrace
