// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/validate/slice_stack.h"
#include "lib/validate/trace_finding.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

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
    bool can_merge = false;  // with siblings of its name
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
  void HandleDescriptor(std::string_view descriptor);
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
  bool IsValid(const Descriptor& descriptor);
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
