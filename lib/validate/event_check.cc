// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/event_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "lib/base/clean_text.h"
#include "lib/validate/limits.h"
#include "lib/validate/perfetto_numbers.h"
#include "lib/validate/slice_stack.h"

namespace neurontrace {
namespace {

namespace event = perfetto_read::event;
namespace legacy = perfetto_read::legacy;

// Names beyond this number are not remembered: a finding about such a slice has no name.
constexpr size_t kNamesMax = 65'536;

// Returns a name that is safe to print and not too long.
std::string ShownName(std::string_view name) {
  return CleanText(name, validate_limits::kNameBytesMax);
}

}  // namespace

// The three cases are the parts of TrackEvent that neurontrace never writes: legacy phases, times
// relative to a thread, tracks by thread.
bool EventCheck::IsUnchecked(const TraceSequence& sequence, uint64_t uuid) {
  const uint64_t type = event_.Number(event::kType, 0);
  legacy_.Parse(event_.Text(event::kLegacy));
  // LegacyEvents have phases and rules of their own, which neurontrace never writes.
  if (event_.Has(event::kLegacy) && (type == 0 || legacy_.Has(legacy::kPhase))) {
    log_.AddUnchecked("events of a phase, not a type (LegacyEvent), and slices of their tracks");
    if (Track* const track = uuid == 0 ? nullptr : tracks_.ForEvent(uuid)) StopFollowing(*track);
    return true;
  }
  if (event_.Has(event::kTimestampDeltaUs) || event_.Has(event::kTimestampAbsoluteUs)) {
    log_.AddUnchecked("events that count their time from a ThreadDescriptor's");
    return true;
  }
  // Without a track an event belongs to the thread of its sequence, which Perfetto creates.
  const bool is_by_thread =
      sequence.has_thread ? !event_.Has(event::kTrackUuid)
                          : legacy_.Has(legacy::kPidOverride) || legacy_.Has(legacy::kTidOverride);
  if (uuid != 0 || !is_by_thread || type >= perfetto_read::kCounter) return false;
  log_.AddUnchecked("events on the track of a ThreadDescriptor, or of a LegacyEvent's thread");
  return true;
}

// Interned texts are valid in their sequence only.
const InternedText* EventCheck::Resolve(const TraceSequence& sequence, uint32_t table, uint64_t iid,
                                        std::string_view what) {
  const auto found = sequence.texts.find({table, iid});
  if (found != sequence.texts.end()) return &found->second;
  // If texts of the sequence exceeded the limit, a missing one may be valid.
  if (!sequence.is_cut) {
    log_.Add(TraceCheck::kInternedMissing, "The event's {} has number {}, which is not interned.",
             what, iid);
  }
  return nullptr;
}

EventCheck::Names EventCheck::NamesOf(const TraceSequence& sequence) {
  Names names;
  // A number has priority over a text, as in Perfetto.
  if (const uint64_t iid = event_.Number(event::kNameIid, 0); iid != 0) {
    const auto* text = Resolve(sequence, perfetto_read::interned::kEventNames, iid, "name");
    if (text != nullptr) names = {.name = text->hash, .shown = text->beginning};
  } else if (event_.Has(event::kName)) {
    names.name = HashText(event_.Text(event::kName));
    names.shown = event_.Text(event::kName);
  }
  names.category = CategoryOf(sequence);
  return names;
}

// Joins the categories as Perfetto does: with commas, interned ones first. A category that was not
// interned is omitted unless it is alone. Compares only the beginnings of categories, as only these
// are kept.
uint64_t EventCheck::CategoryOf(const TraceSequence& sequence) {
  joined_.clear();
  size_t count = 0;
  const auto join = [this](std::string_view text) {
    if (joined_.size() >= validate_limits::kCategoriesBytesMax) return;
    if (!joined_.empty()) joined_ += ',';
    joined_ += text;
  };
  uint64_t missing = 0;
  for (const TraceMessage::Field& field : event_) {
    if (field.tag != event::kCategoryIid) continue;
    ++count;
    const auto* text =
        Resolve(sequence, perfetto_read::interned::kCategories, field.number, "category");
    if (text == nullptr) missing = field.number;
    if (text != nullptr) join(text->beginning);
  }
  for (const TraceMessage::Field& field : event_) {
    if (field.tag != event::kCategory) continue;
    ++count;
    join(ShownName(field.text));
  }
  if (count == 0) return 0;
  if (count == 1 && missing != 0) joined_ = fmt::format("unknown({})", missing);
  if (joined_.size() >= validate_limits::kCategoriesBytesMax) {
    log_.Add(TraceCheck::kLimit,
             "The event's categories have more than {} bytes; the others are not read.",
             validate_limits::kCategoriesBytesMax);
  }
  return joined_.empty() && count > 1 ? 0 : HashText(joined_);
}

EventCheck::TrackText EventCheck::ReadArguments(const TraceSequence& sequence) {
  namespace annotation = perfetto_read::annotation;
  // Arguments that neurontrace's exporter writes: they are compared with the events themselves.
  static const uint64_t kDuration = HashText("duration");
  static const uint64_t kSqueezed = HashText("squeezed");
  static const uint64_t kEvents = HashText("events");
  TrackText texts;
  for (const TraceMessage::Field& field : event_) {
    if (field.tag != event::kAnnotation) continue;
    ++summary_.arguments;
    argument_.Parse(field.text);
    const InternedText* name = nullptr;
    if (const uint64_t iid = argument_.Number(annotation::kNameIid, 0); iid != 0) {
      name = Resolve(sequence, perfetto_read::interned::kAnnotationNames, iid, "argument");
    }
    if (const uint64_t iid = argument_.Number(annotation::kStringValueIid, 0); iid != 0) {
      Resolve(sequence, perfetto_read::interned::kStringValues, iid, "argument's text");
    }
    // The exporter interns the names of its arguments, so plain names are not its own.
    if (name == nullptr || !are_arguments_known_) continue;
    std::optional<uint64_t> number = argument_.Number(annotation::kIntValue);
    if (!number) number = argument_.Number(annotation::kUintValue);
    if (number && name->hash == kDuration) texts.duration_ns = number;
    if (number && name->hash == kEvents) texts.events = number;
    if (name->hash == kSqueezed) texts.is_squeezed = true;
  }
  return texts;
}

// Ends of this track are no findings from here on, as their begins are unknown.
void EventCheck::StopFollowing(Track& track) {
  track.is_unfollowed = true;
  open_slices_ -= track.open.size();
  track.open.Clear();
}

void EventCheck::Settle(Track& track, uint64_t time_ns) {
  const size_t before = track.open.size();
  const TracePosition here = log_.position();
  // Each cut slice is reported at the place of its own end.
  while (const auto cut = track.open.Settle(time_ns)) {
    log_.MoveTo(cut->slice.at);
    log_.Add(TraceCheck::kMisplacedEnd,
             "The slice from {} to {} ns on track {} ('{}') ends here, before {} inside it, which "
             "Perfetto cuts short.",
             cut->slice.start_ns, cut->slice.end_ns, track.track.uuid, track.track.name,
             DescribeCount(cut->slices, "slice"));
  }
  log_.MoveTo(here);
  open_slices_ -= before - track.open.size();
}

bool EventCheck::IsInOrder(Track& track, uint64_t time_ns) {
  if (track.is_unfollowed) return false;
  // Perfetto sorts events by time. Following them in another order would report errors that
  // Perfetto does not have.
  if (time_ns < track.last_ns) {
    log_.Add(TraceCheck::kOrder,
             "Time runs backwards by {} ns on track {} ('{}'); the nesting of its slices is not "
             "checked from here on.",
             track.last_ns - time_ns, track.track.uuid, track.track.name);
    StopFollowing(track);
    return false;
  }
  track.last_ns = time_ns;
  Settle(track, time_ns);
  return true;
}

void EventCheck::HandleBegin(Track& track, const Names& names, const TrackText& texts,
                             uint64_t time_ns) {
  ++summary_.slices;
  ++track.track.slices;
  if (!IsInOrder(track, time_ns)) return;
  // Perfetto drops the slice, so ends after it would be matched wrongly.
  if (track.open.size() >= validate_limits::kDepthMax) {
    log_.Add(TraceCheck::kDepth,
             "Slice '{}' on track {} ('{}') is nested deeper than {} and is dropped.",
             ShownName(names.shown), track.track.uuid, track.track.name,
             validate_limits::kDepthMax);
    return StopFollowing(track);
  }
  if (open_slices_ >= validate_limits::kOpenSlicesMax) {
    log_.Add(TraceCheck::kLimit, "More than {} slices are open; those on track {} are not checked.",
             validate_limits::kOpenSlicesMax, track.track.uuid);
    return StopFollowing(track);
  }
  ++open_slices_;
  // SliceStack keeps only hashes of names, and findings need the text.
  if (names_.size() < kNamesMax && !names_.contains(names.name)) {
    names_.emplace(names.name, ShownName(names.shown));
  }
  track.open.Begin({.start_ns = time_ns,
                    .name = names.name,
                    .category = names.category,
                    .at = log_.position(),
                    // A squeezed event's duration is not that of its slice.
                    .duration_ns = texts.is_squeezed ? std::nullopt : texts.duration_ns});
}

// The begin or the end may say how long the slice lasts.
bool EventCheck::HandleEnd(Track& track, const Names& names, const TrackText& texts,
                           uint64_t time_ns) {
  if (!IsInOrder(track, time_ns)) return true;
  const size_t before = track.open.size();
  const auto slice = track.open.End(names.name, names.category, time_ns, log_.position());
  open_slices_ -= before - track.open.size();
  if (!slice) {
    // Perfetto counts an error on tracks of threads only.
    const bool is_thread = track.track.kind == TrackKind::kThread;
    const std::string of =
        names.shown.empty() ? "" : fmt::format(" of '{}'", ShownName(names.shown));
    log_.Add(is_thread ? TraceCheck::kThreadEndWithoutBegin : TraceCheck::kEndWithoutBegin,
             "An end{} on track {} ('{}') has no begin.", of, track.track.uuid, track.track.name);
    return false;
  }
  const auto duration_ns = texts.duration_ns ? texts.duration_ns : slice->duration_ns;
  if (duration_ns && *duration_ns != time_ns - slice->start_ns) {
    log_.Add(
        TraceCheck::kDuration,
        "The slice on track {} ('{}') that begins in packet {} has a duration of {} ns but ends "
        "after {} ns: it overlaps another slice of its track, and their ends are swapped.",
        track.track.uuid, track.track.name, slice->at.packet, *duration_ns,
        time_ns - slice->start_ns);
  }
  return true;
}

void EventCheck::HandleCounter(Track& track) {
  ++summary_.counter_values;
  ++track.track.counter_values;
  if (track.track.kind != TrackKind::kCounter || !track.track.is_described) {
    log_.Add(TraceCheck::kCounterTrack,
             "A counter value is on track {} ('{}'), which is not described as a counter.",
             track.track.uuid, track.track.name);
  }
  // A counter's value is an integer or a floating-point number; NaN and infinities count as no
  // value.
  const auto real = event_.Number(event::kDoubleCounterValue);
  const bool is_finite = !real || std::isfinite(std::bit_cast<double>(*real));
  if ((!real && !event_.Has(event::kCounterValue)) || !is_finite) {
    log_.Add(TraceCheck::kCounterValue, "A counter event on track {} ('{}') has no {}value.",
             track.track.uuid, track.track.name, is_finite ? "" : "finite ");
  }
}

void EventCheck::CheckExtraCounters(uint32_t value_tag, uint32_t uuid_tag, uint64_t default_uuids) {
  const auto count = [this](uint32_t tag) {
    return static_cast<uint64_t>(std::count_if(
        event_.begin(), event_.end(), [tag](const auto& field) { return field.tag == tag; }));
  };
  const uint64_t values = count(value_tag);
  if (values == 0) return;
  const uint64_t uuids = count(uuid_tag);
  // Without tracks of its own the event uses those of its sequence's defaults.
  const uint64_t tracks = uuids == 0 ? default_uuids : uuids;
  if (values > validate_limits::kExtraCountersMax || values > tracks) {
    log_.Add(TraceCheck::kExtraCounters,
             "The event has {} extra counter values for {} tracks; the limit is {}.", values,
             tracks, validate_limits::kExtraCountersMax);
  }
  for (const TraceMessage::Field& field : event_) {
    if (field.tag != uuid_tag) continue;
    // May move all tracks, so pointers to others are invalid afterwards.
    Track* const track = tracks_.ForEvent(field.number);
    if (track == nullptr) return;
    ++summary_.counter_values;
    ++track->track.counter_values;
    if (track->track.kind != TrackKind::kCounter) {
      log_.Add(TraceCheck::kCounterTrack,
               "An extra counter value is on track {}, which is not described as a counter.",
               field.number);
    }
  }
}

void EventCheck::HandleExtraCounters(const TraceSequence& sequence) {
  CheckExtraCounters(event::kExtraCounterValue, event::kExtraCounterUuid,
                     sequence.default_extra_uuids);
  CheckExtraCounters(event::kExtraDoubleCounterValue, event::kExtraDoubleCounterUuid,
                     sequence.default_extra_double_uuids);
}

void EventCheck::HandleFlows(const Track& track, uint64_t time_ns, bool has_slice) {
  using Kind = FlowPoints::Kind;
  const auto is_flow = [](const TraceMessage::Field& field) {
    return field.tag == event::kFlowId || field.tag == event::kTerminatingFlowId;
  };
  const auto bind_id = legacy_.Number(legacy::kBindId);
  // Perfetto binds flows only to slices and instants.
  if (!has_slice) {
    const auto count =
        std::count_if(event_.begin(), event_.end(), is_flow) + (bind_id.has_value() ? 1 : 0);
    if (count == 0) return;
    log_.Add(TraceCheck::kFlowSlice,
             "An event on track {} ('{}') has {} but neither begins nor ends a slice; no arrow is "
             "drawn.",
             track.track.uuid, track.track.name,
             DescribeCount(static_cast<uint64_t>(count), "flow"));
    return;
  }
  // A LegacyEvent's flow has an id and a direction, but no type.
  if (bind_id) {
    const uint64_t direction = legacy_.Number(legacy::kFlowDirection, 0);
    if (direction == 0 || direction > legacy::kFlowInOut) {
      log_.Add(TraceCheck::kFlowLegacy,
               "The event has flow {} without a direction; no arrow is drawn.", *bind_id);
    } else if (direction == legacy::kFlowIn) {
      flows_.Take(*bind_id, time_ns, Kind::kBoundIn);
    } else {
      log_.AddUnchecked("whether outgoing flows of LegacyEvents begin twice");
      flows_.Take(*bind_id, time_ns, Kind::kStep);
    }
  }
  for (const TraceMessage::Field& field : event_) {
    if (!is_flow(field)) continue;
    const bool ends = field.tag == event::kTerminatingFlowId;
    flows_.Take(field.number, time_ns, ends ? Kind::kTerminating : Kind::kStep);
  }
}

bool EventCheck::HandleByType(Track& track, uint64_t type, const TraceSequence& sequence,
                              uint64_t time_ns) {
  // The name of the instants by which neurontrace's exporter marks a loss.
  static const uint64_t kEventsLost = HashText("events lost");
  const Names names = NamesOf(sequence);
  const TrackText texts = ReadArguments(sequence);
  switch (type) {
    case perfetto_read::kBegin:
      HandleBegin(track, names, texts, time_ns);
      return true;
    case perfetto_read::kEnd:
      return HandleEnd(track, names, texts, time_ns);
    case perfetto_read::kInstant:
      ++summary_.instants;
      ++track.track.instants;
      // Called for its effect: the instant ends slices before it.
      IsInOrder(track, time_ns);
      if (are_arguments_known_ && names.name == kEventsLost) {
        ++summary_.loss_instants;
        summary_.lost_events += texts.events.value_or(0);
      }
      return true;
    case perfetto_read::kCounter:
      HandleCounter(track);
      IsInOrder(track, time_ns);
      return false;
    case perfetto_read::kState:
      // States have no rules beyond their track.
      break;
    default:
      log_.Add(TraceCheck::kEventType, "The event has the unknown type {}.", type);
  }
  ++summary_.other_events;
  return true;
}

void EventCheck::Take(std::string_view bytes, const TraceSequence& sequence,
                      std::optional<uint64_t> time_ns) {
  event_.Parse(bytes);
  const auto own_uuid = event_.Number(event::kTrackUuid);
  // The event's own track has priority over the default of its sequence.
  const auto reported_uuid = own_uuid ? own_uuid : sequence.default_track_uuid;
  const uint64_t uuid = reported_uuid.value_or(0);
  if (IsUnchecked(sequence, uuid)) {
    ++summary_.other_events;
    return;
  }
  if (!time_ns) {
    log_.Add(TraceCheck::kTimestamp, "The event has no time and is dropped.");
    return;
  }
  const uint64_t type = event_.Number(event::kType, 0);
  if (type == perfetto_read::kState && !reported_uuid) {
    log_.Add(TraceCheck::kStateTrack, "A state event names no track and is dropped.");
    ++summary_.other_events;
    return;
  }
  Track* const track = tracks_.ForEvent(uuid);
  if (track == nullptr) return;
  // Counted for every event that is not dropped, so that the period covers all of them.
  summary_.first_ns = std::min(summary_.first_ns, *time_ns);
  summary_.last_ns = std::max(summary_.last_ns, *time_ns);
  track->track.first_ns = std::min(track->track.first_ns, *time_ns);
  for (const TraceMessage::Field& field : event_) {
    if (field.tag < event::kExtensionFirst || field.tag > event::kExtensionLast) continue;
    log_.AddUnchecked("extensions of TrackEvent (fields 1000 to 9999)");
    break;
  }
  // Flows refer to the slice that the event begins or ends.
  HandleFlows(*track, *time_ns, HandleByType(*track, type, sequence, *time_ns));
  // Last, as it may move the track.
  HandleExtraCounters(sequence);
}

void EventCheck::ReportOpen(const Track& track, const SliceStack::Slice& slice) {
  const auto name = names_.find(slice.name);
  log_.MoveTo(slice.at);
  log_.Add(TraceCheck::kOpenSlices,
           "Slice{} that begins at {} ns on track {} ('{}') never ends; it is drawn to the end of "
           "the trace.",
           slice.name == 0        ? std::string(" without a name")
           : name == names_.end() ? std::string()
                                  : fmt::format(" '{}'", name->second),
           slice.start_ns, track.track.uuid, track.track.name);
}

void EventCheck::Finish() {
  flows_.Finish();
  for (Track& track : tracks_.states()) {
    track.track.open_slices = track.open.open();
    summary_.open_slices += track.open.open();
    for (const SliceStack::Slice& slice : track.open.slices()) {
      if (slice.end_ns == SliceStack::kOpen) ReportOpen(track, slice);
    }
  }
}

}  // namespace neurontrace
