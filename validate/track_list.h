// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
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
    // For who checks the events.
    bool is_out_of_order = false;
    uint64_t last_ns = 0;
    uint32_t slices = 0xffffffffu;
  };

  explicit TrackList(TraceFindingLog& log) : log_(log) {}

  // Throws protozero::exception.
  void TakeDescriptor(std::string_view descriptor, uint64_t machine);
  // The track that an event is on; nullptr: there are too many tracks.
  State* ForEvent(uint64_t uuid);

  // After the last packet: what hangs from nothing, what was never described, who merges with whom.
  void Finish();
  // With parents as indexes; moves them out.
  std::vector<TraceTrack> TakeTracks();
  size_t size() const { return tracks_.size(); }
  std::vector<State>& states() { return tracks_; }

 private:
  struct Descriptor {
    std::optional<uint64_t> uuid;
    std::optional<uint64_t> parent_uuid;
    bool is_process = false, is_thread = false, is_counter = false;
    bool has_pid = false, has_tid = false;
    uint64_t merge = 0;
    uint64_t child_ordering = 0;
    bool has_rank = false;
    TraceTrack track;
  };

  static Descriptor Read(std::string_view bytes);
  static void ReadProcess(std::string_view bytes, Descriptor& out);
  static void ReadThread(std::string_view bytes, Descriptor& out);
  bool IsSound(const Descriptor& descriptor);
  void CheckIds(const Descriptor& descriptor, uint64_t machine);
  State* Find(uint64_t uuid);
  State* Add(uint64_t uuid);
  void CheckAncestors(const State& state);
  void CheckMerging();

  TraceFindingLog& log_;
  std::vector<State> tracks_;
  absl::flat_hash_map<uint64_t, uint32_t> by_uuid_;
  // By machine and pid, and machine, pid and tid: the track's uuid.
  absl::flat_hash_map<std::pair<uint64_t, int64_t>, uint64_t> processes_;
  absl::flat_hash_map<std::pair<std::pair<uint64_t, int64_t>, int64_t>, uint64_t> threads_;
};

}  // namespace neurontrace
