// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/track_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "lib/base/clean_text.h"
#include "lib/validate/limits.h"
#include "lib/validate/perfetto_numbers.h"
#include "lib/validate/sequence_table.h"
#include "lib/validate/trace_message.h"

namespace neurontrace {
namespace {

// Returns a name that is safe to print and not too long.
std::string Shown(std::string_view name) { return CleanText(name, validate_limits::kNameBytesMax); }

// Returns the part of a finding about the loss of a track. Perfetto looks up the parents of every
// described track, whether it is used or not.
std::string DescribeDropped(const TraceTrack& track) {
  const uint64_t events = track.slices + track.instants + track.counter_values;
  if (events == 0) return "it is dropped";
  return fmt::format("it is dropped with {} on it", DescribeCount(events, "event"));
}

}  // namespace

// Only fields that a check or the report needs are read.
TrackList::Descriptor TrackList::Read(std::string_view bytes) {
  namespace descriptor = perfetto_read::descriptor;
  const TraceMessage message(bytes);
  Descriptor out;
  TraceTrack& track = out.track;
  out.uuid = message.Number(descriptor::kUuid);
  out.parent_uuid = message.Number(descriptor::kParentUuid, 0);
  out.child_ordering = message.Number(descriptor::kChildOrdering, 0);
  out.merge = message.Number(descriptor::kSiblingMergeBehavior, 0);
  track.description = Shown(message.Text(descriptor::kDescription));
  // A thread that is also described as a process is a thread.
  const bool is_thread = message.Has(descriptor::kThread);
  std::optional<uint64_t> rank = message.Number(descriptor::kSiblingOrderRank);
  if (is_thread || message.Has(descriptor::kProcess)) {
    const TraceMessage ids(message.Text(is_thread ? descriptor::kThread : descriptor::kProcess));
    // Perfetto's fields for a process and a thread have equal numbers for pid.
    track.kind = is_thread ? TrackKind::kThread : TrackKind::kProcess;
    out.has_pid = ids.Has(descriptor::kPid);
    track.pid = static_cast<int32_t>(ids.Number(descriptor::kPid, 0));
    out.has_tid = is_thread && ids.Has(descriptor::kTid);
    if (is_thread) track.tid = static_cast<int64_t>(ids.Number(descriptor::kTid, 0));
    track.name = Shown(ids.Text(is_thread ? descriptor::kThreadName : descriptor::kProcessName));
    if (!rank) rank = ids.Number(descriptor::kSortIndex);
  } else if (message.Has(descriptor::kCounter)) {
    track.kind = TrackKind::kCounter;
  }
  track.rank = static_cast<int32_t>(rank.value_or(0));
  // The last of the three name fields counts, as they are one oneof.
  std::string_view name;
  for (const TraceMessage::Field& field : message) {
    if (field.tag == descriptor::kName || field.tag == descriptor::kStaticName ||
        field.tag == descriptor::kAtraceName) {
      name = field.text;
    }
  }
  if (track.name.empty()) track.name = Shown(name);
  return out;
}

// Returns false if Perfetto drops the descriptor; other faults are only logged.
bool TrackList::IsValid(const Descriptor& descriptor) {
  if (!descriptor.uuid) {
    log_.Add(TraceCheck::kTrackUuid, "The descriptor of track '{}' has no uuid.",
             descriptor.track.name);
    return false;
  }
  if (descriptor.child_ordering > 3) {
    log_.Add(TraceCheck::kTrackOrdering, "Track {} has the unknown child ordering {}.",
             *descriptor.uuid, descriptor.child_ordering);
  }
  if (*descriptor.uuid == 0 && descriptor.parent_uuid != 0) {
    log_.Add(TraceCheck::kTrackRoot, "Track 0, the root, has a parent.");
  }
  const TrackKind kind = descriptor.track.kind;
  if (kind == TrackKind::kProcess && !descriptor.has_pid) {
    log_.Add(TraceCheck::kTrackPid, "The descriptor of process '{}' has no pid.",
             descriptor.track.name);
    return false;
  }
  if (kind == TrackKind::kThread && (!descriptor.has_pid || !descriptor.has_tid)) {
    log_.Add(TraceCheck::kTrackTid, "The descriptor of thread '{}' has no {}.",
             descriptor.track.name, descriptor.has_pid ? "tid" : "pid");
    return false;
  }
  // Track 0 is the root; its descriptor only orders processes and adds no track.
  return *descriptor.uuid != 0;
}

// Logs a second track of a process or thread, which Perfetto interprets as the reuse of its number.
// Later descriptors are compared with the newest.
void TrackList::CheckIds(const Descriptor& descriptor) {
  const TraceTrack& track = descriptor.track;
  const bool is_thread = track.kind == TrackKind::kThread;
  if (!is_thread && track.kind != TrackKind::kProcess) return;
  const auto [known, is_new] = by_ids_.try_emplace(
      {track.pid, is_thread ? std::optional(track.tid) : std::nullopt}, *descriptor.uuid);
  if (is_new || known->second == *descriptor.uuid) return;
  if (is_thread) {
    log_.Add(TraceCheck::kTrackReuse,
             "Tracks {} and {} are both thread {} of pid {}; Perfetto treats the second as a new "
             "thread.",
             known->second, *descriptor.uuid, track.tid, track.pid);
  } else {
    log_.Add(TraceCheck::kTrackReuse,
             "Tracks {} and {} are both the process of pid {}; Perfetto treats the second as a new "
             "process and ends the threads of the first.",
             known->second, *descriptor.uuid, track.pid);
  }
  known->second = *descriptor.uuid;
}

TrackList::State* TrackList::Find(uint64_t uuid) {
  const auto found = by_uuid_.find(uuid);
  return found == by_uuid_.end() ? nullptr : &tracks_[found->second];
}

TrackList::State* TrackList::Add(uint64_t uuid) {
  if (tracks_.size() >= validate_limits::kTracksMax) {
    log_.Add(TraceCheck::kLimit, "There are more than {} tracks; the others are not checked.",
             validate_limits::kTracksMax);
    return nullptr;
  }
  by_uuid_.emplace(uuid, static_cast<uint32_t>(tracks_.size()));
  State& state = tracks_.emplace_back();
  state.track.uuid = uuid;
  state.first_at = log_.position();
  return &state;
}

void TrackList::HandleDescriptor(std::string_view bytes) {
  Descriptor descriptor = Read(bytes);
  if (!IsValid(descriptor)) return;
  State* state = Find(*descriptor.uuid);
  if (state != nullptr && state->track.is_described) {
    const bool is_same = state->track.kind == descriptor.track.kind &&
                         state->parent_uuid == descriptor.parent_uuid &&
                         state->track.pid == descriptor.track.pid &&
                         state->track.tid == descriptor.track.tid;
    if (!is_same) {
      log_.Add(TraceCheck::kTrackConflict,
               "Track {} ('{}') is described again with other properties ('{}'); the second "
               "description is ignored.",
               *descriptor.uuid, state->track.name, descriptor.track.name);
    }
    return;
  }
  if (state != nullptr) {
    log_.Add(TraceCheck::kTrackLate, "Track {} ('{}') is described after its first event.",
             *descriptor.uuid, descriptor.track.name);
  } else {
    state = Add(*descriptor.uuid);
    if (state == nullptr) return;
  }
  CheckIds(descriptor);
  // Events may precede the descriptor, so their counts are kept.
  const TraceTrack counted = std::move(state->track);
  state->track = std::move(descriptor.track);
  TraceTrack& track = state->track;
  track.uuid = *descriptor.uuid;
  track.is_described = true;
  track.child_order = static_cast<ChildOrder>(std::min<uint64_t>(descriptor.child_ordering, 3));
  track.slices = counted.slices;
  track.instants = counted.instants;
  track.counter_values = counted.counter_values;
  track.first_ns = counted.first_ns;
  // Processes and threads have no parent: their ids place them.
  const bool is_plain = track.kind == TrackKind::kPlain || track.kind == TrackKind::kCounter;
  state->has_parent = is_plain && descriptor.parent_uuid != 0;
  state->parent_uuid = descriptor.parent_uuid;
  state->can_merge = is_plain && descriptor.merge != perfetto_read::descriptor::kMergeNone;
}

TrackList::State* TrackList::ForEvent(uint64_t uuid) {
  State* const state = Find(uuid);
  return state == nullptr ? Add(uuid) : state;
}

void TrackList::CheckAncestors(const State& state) {
  const State* above = &state;
  for (size_t i = 0; above->has_parent; ++i) {
    const uint64_t uuid = above->parent_uuid;
    // The limit also ends the walk in a cycle.
    if (i == validate_limits::kAncestorsMax) {
      log_.Add(TraceCheck::kTrackParent,
               "Track {} ('{}') has more than {} ancestors or is its own ancestor: {}.",
               state.track.uuid, state.track.name, validate_limits::kAncestorsMax,
               DescribeDropped(state.track));
      return;
    }
    above = Find(uuid);
    if (above == nullptr || !above->track.is_described) {
      log_.Add(TraceCheck::kTrackParent,
               "Track {} ('{}') is a child of track {}, which is never described: {}.",
               state.track.uuid, state.track.name, uuid, DescribeDropped(state.track));
      return;
    }
  }
}

void TrackList::CheckMerging() {
  // Perfetto merges by parent and name; the type of a counter is not considered here.
  absl::flat_hash_set<std::pair<uint64_t, uint64_t>> names;  // parent and name
  for (const State& state : tracks_) {
    if (!state.can_merge || !state.track.is_described) continue;
    if (names.emplace(state.parent_uuid, HashText(state.track.name)).second) continue;
    log_.MoveTo(state.first_at);
    log_.Add(TraceCheck::kTrackMerged,
             "Track {} has the name '{}' of a sibling and may be merged with it "
             "(sibling_merge_behavior is not NONE).",
             state.track.uuid, state.track.name);
  }
}

void TrackList::Finish() {
  for (const State& state : tracks_) {
    // Findings are at the track's first position, not at the end of the file.
    log_.MoveTo(state.first_at);
    if (state.track.is_described) {
      CheckAncestors(state);
    } else if (state.track.uuid != 0) {
      log_.Add(TraceCheck::kTrackUndescribed,
               "Track {} is never described; Perfetto names it after its first event.",
               state.track.uuid);
    }
  }
  CheckMerging();
}

std::vector<TraceTrack> TrackList::TakeTracks() {
  std::vector<TraceTrack> tracks;
  tracks.reserve(tracks_.size());
  for (State& state : tracks_) {
    TraceTrack& track = tracks.emplace_back(std::move(state.track));
    const auto found = by_uuid_.find(state.parent_uuid);
    if (state.has_parent && found != by_uuid_.end()) track.parent = found->second;
  }
  // A thread belongs to the process of its pid, whatever its parent field contains; of several
  // processes to the last.
  absl::flat_hash_map<int64_t, uint32_t> process_of_pid;
  for (uint32_t i = 0; i < tracks.size(); ++i) {
    if (tracks[i].kind == TrackKind::kProcess) process_of_pid[tracks[i].pid] = i;
  }
  for (TraceTrack& track : tracks) {
    const auto found = process_of_pid.find(track.pid);
    if (track.kind == TrackKind::kThread && found != process_of_pid.end()) {
      track.parent = found->second;
    }
  }
  return tracks;
}

}  // namespace neurontrace
