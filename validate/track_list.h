// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "validate/slice_stack.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"

namespace neurontrace {

// The tracks of a trace, as they are described and used. One thread at a time.
class TrackList {
 public:
  struct State {
    TraceTrack track;
    uint64_t parent_uuid = 0;
    bool has_parent = false;
    bool may_merge = false;  // with siblings of its name
    TracePosition first_at;  // of the descriptor, or the first event
    // For EventCheck.
    bool is_unfollowed = false;  // how its slices nest is no longer checked
    uint64_t last_ns = 0;
    SliceStack open;
  };

  explicit TrackList(TraceFindingLog& log) : log_(log) {}

  // Throws protozero::exception.
  void TakeDescriptor(std::string_view descriptor);
  // Returns the track that an event is on; nullptr if there are too many tracks.
  State* ForEvent(uint64_t uuid);

  // Checks, after the last packet, parents, tracks that were never described, and siblings that
  // merge.
  void Finish();
  // Moves the tracks out, with parents as indexes.
  std::vector<TraceTrack> TakeTracks();
  size_t size() const { return tracks_.size(); }
  std::vector<State>& states() { return tracks_; }

 private:
  struct Descriptor {
    std::optional<uint64_t> uuid;
    uint64_t parent_uuid = 0;
    bool has_pid = false, has_tid = false;
    uint64_t merge = 0;
    uint64_t child_ordering = 0;
    TraceTrack track;
  };

  static Descriptor Read(std::string_view bytes);
  bool IsSound(const Descriptor& descriptor);
  void CheckIds(const Descriptor& descriptor);
  State* Find(uint64_t uuid);
  State* Add(uint64_t uuid);
  void CheckAncestors(const State& state);
  void CheckMerging();

  TraceFindingLog& log_;
  std::vector<State> tracks_;
  absl::flat_hash_map<uint64_t, uint32_t> by_uuid_;
  // The uuid of the track that has a pid, or a pid and tid.
  absl::flat_hash_map<std::pair<int64_t, std::optional<int64_t>>, uint64_t> by_ids_;
};

}  // namespace neurontrace
