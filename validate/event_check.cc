// SPDX-License-Identifier: Apache-2.0
#include "validate/event_check.h"

#include <algorithm>

#include "validate/limits.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {
namespace {

using perfetto_read::EventType;

constexpr uint32_t kNoSlices = 0xffffffffu;

struct Known {
  uint64_t duration = HashText("duration");
  uint64_t squeezed = HashText("squeezed");
  uint64_t events = HashText("events");
  uint64_t events_lost = HashText("events lost");
};
const Known& KnownTexts() {
  static const Known known;
  return known;
}

}  // namespace

const InternTable::Text* EventCheck::Resolve(const TraceSequence& sequence,
                                             const InternTable& table, uint64_t iid,
                                             std::string_view what) {
  const InternTable::Text* const text = table.Find(iid);
  if (text == nullptr && !sequence.is_cut) {
    log_.Add(TraceCheck::kInternedMissing, "The event's {} has number {}, which is not interned.",
             what, iid);
  }
  return text;
}

EventCheck::Names EventCheck::NamesOf(const TraceSequence& sequence) {
  Names names;
  if (event_.name_iid != 0) {
    const auto* text = Resolve(sequence, sequence.event_names, event_.name_iid, "name");
    if (text != nullptr) names.name = text->hash;
    if (text != nullptr) names.words = text->beginning;
  } else if (!event_.name.empty()) {
    names.name = HashText(event_.name);
    names.words = event_.name.substr(0, validate_limits::kNameBytesMax);
  }
  for (const uint64_t iid : event_.category_iids) {
    const auto* text = Resolve(sequence, sequence.categories, iid, "category");
    if (text != nullptr) names.category = text->hash;
  }
  if (!event_.category.empty()) names.category = HashText(event_.category);
  return names;
}

EventCheck::Said EventCheck::TakeArguments(const TraceSequence& sequence) {
  Said said;
  for (const std::string_view bytes : event_.annotations) {
    ++summary_.arguments;
    const ReadAnnotation annotation = ReadDebugAnnotation(bytes);
    const InternTable::Text* name = nullptr;
    if (annotation.name_iid != 0) {
      name = Resolve(sequence, sequence.annotation_names, annotation.name_iid, "argument");
    }
    if (annotation.string_iid != 0) {
      Resolve(sequence, sequence.strings, annotation.string_iid, "argument's text");
    }
    if (name == nullptr || !annotation.number || !are_arguments_known_) continue;
    if (name->hash == KnownTexts().duration) said.duration_ns = annotation.number;
    if (name->hash == KnownTexts().events) said.events = annotation.number;
    if (name->hash == KnownTexts().squeezed) said.is_squeezed = true;
  }
  return said;
}

std::vector<EventCheck::OpenSlice>& EventCheck::OpenOn(TrackList::State& track) {
  if (track.slices == kNoSlices) {
    track.slices = static_cast<uint32_t>(open_.size());
    open_.emplace_back();
  }
  return open_[track.slices];
}

void EventCheck::GiveUp(TrackList::State& track) {
  track.is_out_of_order = true;
  auto& open = OpenOn(track);
  open_slices_ -= open.size();
  open.clear();
}

bool EventCheck::IsInOrder(TrackList::State& track, uint64_t time_ns) {
  if (track.is_out_of_order) return false;
  if (time_ns < track.last_ns) {
    log_.Add(TraceCheck::kOrder,
             "Time runs backwards by {} ns on track {} ('{}'): how its slices nest is not checked "
             "from here on.",
             track.last_ns - time_ns, track.track.uuid, track.track.name);
    GiveUp(track);
    return false;
  }
  track.last_ns = time_ns;
  return true;
}

void EventCheck::TakeBegin(TrackList::State& track, const Names& names, const Said& said,
                           uint64_t time_ns) {
  auto& open = OpenOn(track);
  if (open.size() >= validate_limits::kDepthMax) {
    log_.Add(TraceCheck::kDepth,
             "Slice '{}' on track {} ('{}') is nested deeper than {}: it is dropped.", names.words,
             track.track.uuid, track.track.name, validate_limits::kDepthMax);
    return GiveUp(track);
  }
  if (open_slices_ >= validate_limits::kOpenSlicesMax) {
    log_.Add(TraceCheck::kLimit, "More than {} slices are open: on track {} they are not followed.",
             validate_limits::kOpenSlicesMax, track.track.uuid);
    return GiveUp(track);
  }
  ++open_slices_;
  open.push_back({.start_ns = time_ns,
                  .name = names.name,
                  .category = names.category,
                  .at = log_.position(),
                  .duration_ns = said.is_squeezed ? std::nullopt : said.duration_ns});
}

void EventCheck::TakeEnd(TrackList::State& track, const Names& names, const Said& said,
                         uint64_t time_ns) {
  auto& open = OpenOn(track);
  const auto fits = [&names](const OpenSlice& slice) {
    return (names.name == 0 || slice.name == 0 || names.name == slice.name) &&
           (names.category == 0 || slice.category == 0 || names.category == slice.category);
  };
  const auto found = std::find_if(open.rbegin(), open.rend(), fits);
  if (found == open.rend()) {
    const bool is_thread = track.track.kind == TrackKind::kThread;
    log_.Add(is_thread ? TraceCheck::kThreadEndWithoutBegin : TraceCheck::kEndWithoutBegin,
             "An end{}{} on track {} ('{}') has no begin.", names.words.empty() ? "" : " of ",
             names.words, track.track.uuid, track.track.name);
    return;
  }
  if (found != open.rbegin()) {
    log_.Add(TraceCheck::kMisplacedEnd,
             "The end of '{}' on track {} ('{}') comes while {} slices in it are open: they are "
             "cut short.",
             names.words, track.track.uuid, track.track.name, found - open.rbegin());
  }
  const OpenSlice slice = *found;
  const auto left = static_cast<size_t>(open.rend() - found) - 1;
  open_slices_ -= open.size() - left;
  open.resize(left);
  const auto duration_ns = said.duration_ns ? said.duration_ns : slice.duration_ns;
  if (duration_ns && *duration_ns != time_ns - slice.start_ns) {
    log_.Add(TraceCheck::kDuration,
             "The slice on track {} ('{}') that begins in packet {} says that it lasts {} ns, and "
             "ends after {} ns: it overlaps another of its track, and their ends are exchanged.",
             track.track.uuid, track.track.name, slice.at.packet, *duration_ns,
             time_ns - slice.start_ns);
  }
}

void EventCheck::TakeCounter(TrackList::State& track) {
  ++summary_.counter_values;
  ++track.track.counter_values;
  if (track.track.kind != TrackKind::kCounter || !track.track.is_described) {
    log_.Add(TraceCheck::kCounterTrack,
             "A counter's value is on track {} ('{}'), which was not described as a counter.",
             track.track.uuid, track.track.name);
  }
  if (!event_.has_counter_value || !event_.is_counter_finite) {
    log_.Add(TraceCheck::kCounterValue, "A counter's event on track {} ('{}') has no {}value.",
             track.track.uuid, track.track.name, event_.has_counter_value ? "finite " : "");
  }
}

void EventCheck::TakeExtraCounters(const TraceSequence& sequence) {
  const auto check = [&](uint64_t values, const std::vector<uint64_t>& uuids, uint64_t defaults) {
    if (values == 0) return;
    const uint64_t tracks = uuids.empty() ? defaults : uuids.size();
    if (values > validate_limits::kExtraCountersMax || values > tracks) {
      log_.Add(TraceCheck::kExtraCounters,
               "The event has {} extra counter values for {} tracks, {} at "
               "most.",
               values, tracks, validate_limits::kExtraCountersMax);
    }
    for (const uint64_t uuid : uuids) {
      TrackList::State* const track = tracks_.ForEvent(uuid);
      if (track == nullptr) return;
      ++summary_.counter_values;
      ++track->track.counter_values;
      if (track->track.kind != TrackKind::kCounter) {
        log_.Add(TraceCheck::kCounterTrack,
                 "An extra counter value is on track {}, which was not described as a counter.",
                 uuid);
      }
    }
  };
  check(event_.extra_values, event_.extra_uuids, sequence.default_extra_uuids);
  check(event_.extra_double_values, event_.extra_double_uuids, sequence.default_extra_double_uuids);
}

void EventCheck::Take(std::string_view bytes, const TraceSequence& sequence, uint64_t time_ns) {
  ReadTrackEvent(bytes, event_);
  TrackList::State* const track =
      tracks_.ForEvent(event_.track_uuid.value_or(sequence.default_track_uuid.value_or(0)));
  if (track == nullptr) return;
  summary_.first_ns = std::min(summary_.first_ns, time_ns);
  summary_.last_ns = std::max(summary_.last_ns, time_ns);
  track->track.first_ns = std::min(track->track.first_ns, time_ns);
  if (event_.extension != 0 && !are_extensions_described_) {
    log_.Add(TraceCheck::kExtension, "The event has field {}, an extension that nothing describes.",
             event_.extension);
  }
  const Names names = NamesOf(sequence);
  const Said said = TakeArguments(sequence);
  for (const uint64_t id : event_.flows) flows_.Take(id, false);
  for (const uint64_t id : event_.terminating_flows) flows_.Take(id, true);
  switch (static_cast<EventType>(event_.type)) {
    case EventType::kBegin:
      ++summary_.slices;
      ++track->track.slices;
      if (IsInOrder(*track, time_ns)) TakeBegin(*track, names, said, time_ns);
      break;
    case EventType::kEnd:
      if (IsInOrder(*track, time_ns)) TakeEnd(*track, names, said, time_ns);
      break;
    case EventType::kInstant:
      ++summary_.instants;
      ++track->track.instants;
      IsInOrder(*track, time_ns);
      if (are_arguments_known_ && names.name == KnownTexts().events_lost) {
        ++summary_.loss_instants;
        summary_.lost_events += said.events.value_or(0);
      }
      break;
    case EventType::kCounter:
      TakeCounter(*track);
      IsInOrder(*track, time_ns);
      break;
    case EventType::kState:
      ++summary_.other_events;
      break;
    default:
      ++summary_.other_events;
      if (!event_.is_legacy) {
        log_.Add(TraceCheck::kEventType, "The event is of type {}, which is none.", event_.type);
      }
  }
  // Moves no pointer that is still needed.
  TakeExtraCounters(sequence);
}

void EventCheck::Finish() {
  flows_.Finish();
  for (TrackList::State& track : tracks_.states()) {
    if (track.slices == kNoSlices || open_[track.slices].empty()) continue;
    const auto& open = open_[track.slices];
    track.track.open_slices = open.size();
    summary_.open_slices += open.size();
    log_.MoveTo(open.front().at);
    log_.Add(TraceCheck::kOpenSlices,
             "{} slices on track {} ('{}') never end: they are drawn to the end of the trace.",
             open.size(), track.track.uuid, track.track.name);
  }
}

}  // namespace neurontrace
