// SPDX-License-Identifier: Apache-2.0
#include "validate/event_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/clean_text.h"
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

std::string WordsOf(std::string_view name) {
  return CleanText(name, validate_limits::kNameBytesMax);
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
  } else if (event_.name.data() != nullptr) {
    names.name = HashText(event_.name);
    names.words = event_.name;
  }
  names.category = CategoryOf(sequence);
  return names;
}

// As Perfetto joins them: with commas, one that was not interned left out unless it is alone. What
// is compared are the beginnings that are kept of them.
uint64_t EventCheck::CategoryOf(const TraceSequence& sequence) {
  const size_t count = event_.category_iids.size() + event_.categories.size();
  if (count == 0) return 0;
  joined_.clear();
  const auto join = [this](std::string_view text) {
    if (!joined_.empty()) joined_ += ',';
    joined_ += text;
  };
  for (const uint64_t iid : event_.category_iids) {
    const auto* text = Resolve(sequence, sequence.categories, iid, "category");
    if (text != nullptr) {
      join(text->beginning);
    } else if (count == 1) {
      fmt::format_to(std::back_inserter(joined_), "unknown({})", iid);
    }
  }
  for (const std::string_view text : event_.categories) join(WordsOf(text));
  return joined_.empty() && count > 1 ? 0 : HashText(joined_);
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

SliceStack& EventCheck::OpenOn(TrackList::State& track) {
  if (track.slices == kNoSlices) {
    track.slices = static_cast<uint32_t>(open_.size());
    open_.emplace_back();
  }
  return open_[track.slices];
}

void EventCheck::GiveUp(TrackList::State& track) {
  track.is_out_of_order = true;
  SliceStack& open = OpenOn(track);
  open_slices_ -= open.size();
  open.Clear();
}

void EventCheck::Settle(TrackList::State& track, uint64_t time_ns) {
  if (track.slices == kNoSlices) return;
  SliceStack& open = open_[track.slices];
  const size_t before = open.size();
  const TracePosition here = log_.position();
  while (const auto cut = open.Settle(time_ns)) {
    log_.MoveTo(cut->slice.at);
    log_.Add(
        TraceCheck::kMisplacedEnd,
        "The slice from {} to {} ns on track {} ('{}') ends here, and {} in it later or never: "
        "cut short.",
        cut->slice.start_ns, cut->slice.end_ns, track.track.uuid, track.track.name,
        CountedWords(cut->slices, "slice"));
  }
  log_.MoveTo(here);
  open_slices_ -= before - open.size();
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
  SliceStack& open = OpenOn(track);
  if (open.size() >= validate_limits::kDepthMax) {
    log_.Add(TraceCheck::kDepth,
             "Slice '{}' on track {} ('{}') is nested deeper than {}: it is dropped.",
             WordsOf(names.words), track.track.uuid, track.track.name, validate_limits::kDepthMax);
    return GiveUp(track);
  }
  if (open_slices_ >= validate_limits::kOpenSlicesMax) {
    log_.Add(TraceCheck::kLimit, "More than {} slices are open: on track {} they are not followed.",
             validate_limits::kOpenSlicesMax, track.track.uuid);
    return GiveUp(track);
  }
  ++open_slices_;
  open.Begin({.start_ns = time_ns,
              .name = names.name,
              .category = names.category,
              .at = log_.position(),
              .duration_ns = said.is_squeezed ? std::nullopt : said.duration_ns});
}

bool EventCheck::TakeEnd(TrackList::State& track, const Names& names, const Said& said,
                         uint64_t time_ns) {
  SliceStack& open = OpenOn(track);
  const size_t before = open.size();
  const auto slice = open.End(names.name, names.category, time_ns, log_.position());
  open_slices_ -= before - open.size();
  if (!slice) {
    const bool is_thread = track.track.kind == TrackKind::kThread;
    log_.Add(is_thread ? TraceCheck::kThreadEndWithoutBegin : TraceCheck::kEndWithoutBegin,
             "An end{}{}{} on track {} ('{}') has no begin.", names.words.empty() ? "" : " of '",
             WordsOf(names.words), names.words.empty() ? "" : "'", track.track.uuid,
             track.track.name);
    return false;
  }
  const auto duration_ns = said.duration_ns ? said.duration_ns : slice->duration_ns;
  if (duration_ns && *duration_ns != time_ns - slice->start_ns) {
    log_.Add(TraceCheck::kDuration,
             "The slice on track {} ('{}') that begins in packet {} says that it lasts {} ns, and "
             "ends after {} ns: it overlaps another of its track, and their ends are exchanged.",
             track.track.uuid, track.track.name, slice->at.packet, *duration_ns,
             time_ns - slice->start_ns);
  }
  return true;
}

void EventCheck::TakeInstant(TrackList::State& track, const Names& names, const Said& said,
                             uint64_t time_ns) {
  ++summary_.instants;
  ++track.track.instants;
  if (IsInOrder(track, time_ns)) Settle(track, time_ns);
  if (are_arguments_known_ && names.name == KnownTexts().events_lost) {
    ++summary_.loss_instants;
    summary_.lost_events += said.events.value_or(0);
  }
}

void EventCheck::TakeFlows(const TrackList::State& track, uint64_t time_ns, bool has_slice) {
  const size_t count = event_.flows.size() + event_.terminating_flows.size();
  if (!has_slice && count > 0) {
    log_.Add(TraceCheck::kFlowSlice,
             "An event on track {} ('{}') has {}, and begins or ends no slice: no arrow is drawn.",
             track.track.uuid, track.track.name, CountedWords(count, "flow"));
    return;
  }
  for (const uint64_t id : event_.flows) flows_.Take(id, time_ns, false);
  for (const uint64_t id : event_.terminating_flows) flows_.Take(id, time_ns, true);
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
  bool has_slice = true;
  switch (static_cast<EventType>(event_.type)) {
    case EventType::kBegin:
      ++summary_.slices;
      ++track->track.slices;
      if (!IsInOrder(*track, time_ns)) break;
      Settle(*track, time_ns);
      TakeBegin(*track, names, said, time_ns);
      break;
    case EventType::kEnd:
      if (!IsInOrder(*track, time_ns)) break;
      Settle(*track, time_ns);
      has_slice = TakeEnd(*track, names, said, time_ns);
      break;
    case EventType::kInstant:
      TakeInstant(*track, names, said, time_ns);
      break;
    case EventType::kCounter:
      TakeCounter(*track);
      IsInOrder(*track, time_ns);
      has_slice = false;
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
  TakeFlows(*track, time_ns, has_slice);
  // Last: it may move the track.
  TakeExtraCounters(sequence);
}

void EventCheck::Finish() {
  flows_.Finish();
  for (TrackList::State& track : tracks_.states()) {
    if (track.slices == kNoSlices || open_[track.slices].open() == 0) continue;
    const SliceStack& open = open_[track.slices];
    track.track.open_slices = open.open();
    summary_.open_slices += open.open();
    log_.MoveTo(open.FirstOpen().at);
    log_.Add(TraceCheck::kOpenSlices,
             "{} on track {} ('{}') never end{}: drawn to the end of the trace.",
             CountedWords(open.open(), "slice"), track.track.uuid, track.track.name,
             open.open() == 1 ? "s" : "");
  }
}

}  // namespace neurontrace
