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
// importer keeps them (src/trace_processor/importers/common/slice_tracker.cc). Times must not
// decrease. Memory is proportional to the slices in it. One thread at a time.
class SliceStack {
 public:
  static constexpr uint64_t kOpen = UINT64_MAX;

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
    size_t slices = 0;
  };

  // Removes slices that have ended before an event at `time_ns`. Called again while it returns a
  // value: the open slices that were cut short are removed too.
  std::optional<Cut> Settle(uint64_t time_ns);
  void Begin(const Slice& slice) { slices_.push_back(slice); }
  // Ends the innermost open slice that fits these names and returns it as it was; nullopt if none
  // fits. An end without a name fits any slice, and a slice without a name any end; an end with a
  // category fits only slices of this category.
  std::optional<Slice> End(uint64_t name, uint64_t category, uint64_t time_ns, TracePosition at);
  void Clear();

  size_t size() const { return slices_.size(); }
  size_t open() const { return slices_.size() - ended_; }
  // From the outermost to the innermost, including those that have ended.
  const std::list<Slice>& slices() const { return slices_; }

 private:
  std::list<Slice> slices_;
  size_t ended_ = 0;  // of these
};

// The tracks of a trace, as they are described and used. One thread at a time.
class TrackList {
 public:
  // A track with the state that the checks need.
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

  // `log` must outlive this.
  explicit TrackList(TraceFindingLog& log) : log_(log) {}

  // Reads a TrackDescriptor, and logs what is wrong with it. Throws protozero::exception.
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
  std::vector<State>& states() { return tracks_; }

 private:
  // The relevant fields of a TrackDescriptor.
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
