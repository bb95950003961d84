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

constexpr size_t kNamesMax = 65'536;

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
    if (joined_.size() >= validate_limits::kCategoriesBytesMax) return;
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
  if (joined_.size() >= validate_limits::kCategoriesBytesMax) {
    log_.Add(TraceCheck::kLimit, "The event's categories have over {} bytes: others are not read.",
             validate_limits::kCategoriesBytesMax);
  }
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

bool EventCheck::HasRoom(TrackList::State& track, const SliceStack& open, const Names& names) {
  if (open.size() >= validate_limits::kDepthMax) {
    log_.Add(TraceCheck::kDepth,
             "Slice '{}' on track {} ('{}') is nested deeper than {}: it is dropped.",
             WordsOf(names.words), track.track.uuid, track.track.name, validate_limits::kDepthMax);
  } else if (open_slices_ >= validate_limits::kOpenSlicesMax) {
    log_.Add(TraceCheck::kLimit, "More than {} slices are open: on track {} they are not followed.",
             validate_limits::kOpenSlicesMax, track.track.uuid);
  } else {
    return true;
  }
  GiveUp(track);
  return false;
}

void EventCheck::TakeBegin(TrackList::State& track, const Names& names, const Said& said,
                           uint64_t time_ns) {
  SliceStack& open = OpenOn(track);
  if (!HasRoom(track, open, names)) return;
  ++open_slices_;
  if (names_.size() < kNamesMax) {
    if (const auto [known, is_new] = names_.try_emplace(names.name); is_new) {
      known->second = WordsOf(names.words);
    }
  }
  open.Begin({.start_ns = time_ns,
              .name = names.name,
              .category = names.category,
              .at = log_.position(),
              .duration_ns = said.is_squeezed ? std::nullopt : said.duration_ns});
}

bool EventCheck::TakeComplete(TrackList::State& track, const Names& names, uint64_t time_ns) {
  const int64_t duration_us = event_.legacy.duration_us;
  if (duration_us < 0) {
    log_.Add(TraceCheck::kNegativeDuration, "Slice '{}' on track {} ('{}') lasts {} us.",
             WordsOf(names.words), track.track.uuid, track.track.name, duration_us);
    return false;
  }
  if (!IsInOrder(track, time_ns)) return true;
  Settle(track, time_ns);
  SliceStack& open = OpenOn(track);
  if (!HasRoom(track, open, names)) return true;
  const uint64_t most_us = (uint64_t{INT64_MAX} - time_ns) / 1'000;
  const uint64_t end_ns = time_ns + std::min(static_cast<uint64_t>(duration_us), most_us) * 1'000;
  if (!open.AddComplete({.start_ns = time_ns,
                         .end_ns = end_ns,
                         .name = names.name,
                         .category = names.category,
                         .at = log_.position()})) {
    log_.Add(TraceCheck::kOverlap,
             "Slice '{}' from {} to {} ns on track {} ('{}') goes on beyond the end of one that it "
             "begins in: it is dropped.",
             WordsOf(names.words), time_ns, end_ns, track.track.uuid, track.track.name);
    return false;
  }
  ++open_slices_;
  return true;
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
  if (IsInOrder(track, time_ns)) {
    Settle(track, time_ns);
    OpenOn(track).AddInstant();
  }
  if (are_arguments_known_ && names.name == KnownTexts().events_lost) {
    ++summary_.loss_instants;
    summary_.lost_events += said.events.value_or(0);
  }
}

// Whether a legacy flow's end has a slice around it; where that is not followed it is taken for
// one.
bool EventCheck::IsInSlice(TrackList::State& track, uint64_t time_ns) {
  return !IsInOrder(track, time_ns) || OpenOn(track).has_slice();
}

bool EventCheck::IsPlaced(EventKind kind, const TraceSequence& sequence) {
  if (kind == EventKind::kState && !event_.track_uuid && !sequence.default_track_uuid) {
    log_.Add(TraceCheck::kStateTrack, "A state's event says no track: it is dropped.");
    return false;
  }
  if (kind != EventKind::kElsewhere && !event_.has_own_time) return true;
  log_.Add(
      TraceCheck::kLegacy,
      "The event's {} is told as before there were tracks (by ids, or a ThreadDescriptor): it is "
      "not looked into.",
      event_.has_own_time ? "time" : "track");
  return false;
}

void EventCheck::TakeOn(TrackList::State& track, EventKind kind, const TraceSequence& sequence,
                        uint64_t time_ns) {
  const Names names = NamesOf(sequence);
  const Said said = TakeArguments(sequence);
  bool has_slice = true;
  switch (kind) {
    case EventKind::kBegin:
      ++summary_.slices;
      ++track.track.slices;
      if (!IsInOrder(track, time_ns)) break;
      Settle(track, time_ns);
      TakeBegin(track, names, said, time_ns);
      break;
    case EventKind::kComplete:
      ++summary_.slices;
      ++track.track.slices;
      has_slice = TakeComplete(track, names, time_ns);
      break;
    case EventKind::kEnd:
      if (!IsInOrder(track, time_ns)) break;
      Settle(track, time_ns);
      has_slice = TakeEnd(track, names, said, time_ns);
      break;
    case EventKind::kInstant:
      TakeInstant(track, names, said, time_ns);
      break;
    case EventKind::kCounter:
      counters_.TakeValue(track, event_);
      IsInOrder(track, time_ns);
      has_slice = false;
      break;
    case EventKind::kFlow:
      ++summary_.other_events;
      return flows_.TakeLegacy(event_, names.category, names.name, time_ns,
                               IsInSlice(track, time_ns));
    case EventKind::kNone:
      log_.Add(TraceCheck::kEventType, "The event is of type {}, which is none.", event_.type);
      [[fallthrough]];
    default:
      ++summary_.other_events;
  }
  flows_.Take(event_, track, time_ns, has_slice);
}

void EventCheck::Take(std::string_view bytes, const TraceSequence& sequence,
                      std::optional<uint64_t> time_ns) {
  ReadTrackEvent(bytes, event_);
  const uint64_t uuid = event_.track_uuid.value_or(sequence.default_track_uuid.value_or(0));
  const EventKind kind = KindOf(event_, uuid, sequence.has_thread);
  if (!time_ns && !event_.has_own_time) {
    log_.Add(TraceCheck::kTimestamp, "The event has no time: it is dropped.");
    return;
  }
  if (!IsPlaced(kind, sequence)) {
    ++summary_.other_events;
    return;
  }
  TrackList::State* const track = tracks_.ForEvent(uuid);
  if (track == nullptr) return;
  summary_.first_ns = std::min(summary_.first_ns, *time_ns);
  summary_.last_ns = std::max(summary_.last_ns, *time_ns);
  track->track.first_ns = std::min(track->track.first_ns, *time_ns);
  if (event_.extension != 0 && !are_extensions_described_) {
    log_.Add(TraceCheck::kExtension, "The event has field {}, an extension that nothing describes.",
             event_.extension);
  }
  TakeOn(*track, kind, sequence, *time_ns);
  // Last: it may move the track.
  counters_.TakeExtra(event_, sequence);
}

void EventCheck::ReportOpen(const TrackList::State& track, const SliceStack::Slice& slice) {
  const auto name = names_.find(slice.name);
  log_.MoveTo(slice.at);
  log_.Add(TraceCheck::kOpenSlices,
           "Slice{} begun at {} ns on track {} ('{}') never ends: drawn to the end of the trace.",
           slice.name == 0        ? std::string(" without a name")
           : name == names_.end() ? std::string()
                                  : fmt::format(" '{}'", name->second),
           slice.start_ns, track.track.uuid, track.track.name);
}

void EventCheck::Finish() {
  flows_.Finish();
  for (TrackList::State& track : tracks_.states()) {
    if (track.slices == kNoSlices || open_[track.slices].open() == 0) continue;
    const SliceStack& open = open_[track.slices];
    track.track.open_slices = open.open();
    summary_.open_slices += open.open();
    for (const SliceStack::Slice& slice : open.slices()) {
      if (slice.end_ns == SliceStack::kOpen) ReportOpen(track, slice);
    }
  }
}

}  // namespace neurontrace
