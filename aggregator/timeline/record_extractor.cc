// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/record_extractor.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "aggregator/timeline/device_stamp.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

constexpr std::string_view kDurationKey = "dur_ns";

// A map may lead beyond what signed times hold; a hostile stamp must not.
uint64_t Reference(ClockMapCursor& clock, uint64_t raw_ns) {
  return std::min(clock.ToReference(raw_ns), kTimeMaxNs);
}

// Returns what an event of this phase shows if it is not part of a span.
RecordKind KindOf(Phase phase) {
  switch (phase) {
    case Phase::kInstant:
      return RecordKind::kInstant;
    case Phase::kFlowStart:
      return RecordKind::kFlowStart;
    case Phase::kFlowStep:
      return RecordKind::kFlowStep;
    case Phase::kFlowEnd:
      return RecordKind::kFlowEnd;
    case Phase::kCounter:
      return RecordKind::kCounter;
    default:
      return RecordKind::kOther;
  }
}

}  // namespace

absl::Status RecordExtractor::Load(std::string columns) {
  columns_ = std::move(columns);
  RETURN_IF_ERROR(chunk_.Decode(columns_));
  pairing_.Pair(chunk_);
  PlanShapes();
  ++counts_.chunks_read;
  return absl::OkStatus();
}

void RecordExtractor::PlanShapes() {
  plans_.clear();
  for (const Shape& shape : chunk_.shapes()) plans_.push_back(PlanShape(shape));
}

RecordExtractor::ShapePlan RecordExtractor::PlanShape(const Shape& shape) const {
  ShapePlan plan;
  // Metadata, which names rows and processes, is no event: it is read beforehand, whatever the
  // filter.
  if (shape.phase == Phase::kMetadata || !filter_.event_types.Selects(shape.event_type))
    return plan;
  plan.has_nrta_seq_id = (shape.present & FieldBit(Field::kNrtaSeqId)) != 0;
  plan.has_sequence = (shape.present & FieldBit(Field::kNcLocalId)) != 0;
  plan.device_key = DeviceStampKey(shape);
  plan.core_key = DeviceCoreKey(shape);
  plan.execution_key = DeviceExecutionKey(shape);
  plan.type_hash = HashEventType(shape.event_type);
  plan.is_anomalous = std::any_of(shape.keys.begin(), shape.keys.end(), [](const ShapeKey& key) {
    return key.scope == KeyScope::kTop && key.name == kDurationMadeUpKey;
  });
  plan.kind = KindOf(shape.phase);
  switch (shape.phase) {
    case Phase::kStart:
    case Phase::kBegin:
      plan.action = Action::kStart;
      plan.kind = RecordKind::kSpan;
      return plan;
    case Phase::kStop:
    case Phase::kEnd:
      plan.action = Action::kStop;
      plan.kind = RecordKind::kStopAttributes;
      return plan;
    case Phase::kComplete:
      for (uint32_t key = 0; key < shape.keys.size(); ++key) {
        if (shape.keys[key].name != kDurationKey || shape.keys[key].type != ValueType::kUint)
          continue;
        plan.action = Action::kComplete;
        plan.kind = RecordKind::kSpan;
        plan.duration_key = key;
        return plan;
      }
      // A complete event without a usable duration is shown as a point.
      [[fallthrough]];
    default:
      plan.action = Action::kPoint;
      return plan;
  }
}

size_t RecordExtractor::values() const {
  const auto shapes = chunk_.shapes();
  const auto shape_of = chunk_.shape_of();
  return std::accumulate(
      shape_of.begin(), shape_of.end(), size_t{0},
      [&](size_t sum, uint16_t shape) { return sum + shapes[shape].keys.size(); });
}

std::shared_ptr<const ChunkNames> RecordExtractor::BuildNames(uint64_t serial) {
  auto names = std::make_shared<ChunkNames>();
  names->serial = serial;
  size_t bytes = 0;
  for (const auto& text : chunk_.strings()) bytes += text.size();
  // Reserved in full, because the views below point into it and a reallocation would invalidate
  // them.
  names->text.reserve(bytes);
  names->bytes = sizeof(ChunkNames) + bytes + chunk_.strings().size() * sizeof(std::string_view) +
                 chunk_.shapes().size() * sizeof(const SharedShape*);
  names->strings.reserve(chunk_.strings().size());
  for (const auto& text : chunk_.strings()) {
    const size_t at = names->text.size();
    names->text += text;
    names->strings.push_back(std::string_view(names->text).substr(at, text.size()));
  }
  for (const Shape& shape : chunk_.shapes()) names->shapes.push_back(shapes_.Share(shape, *names));
  return names;
}

absl::StatusOr<std::shared_ptr<ChunkWindow>> RecordExtractor::Extract(
    const StreamContext& stream, std::shared_ptr<const ChunkNames> names, const EventRange& range) {
  const auto timestamps = chunk_.timestamp_ns();
  records_.clear();
  values_.clear();
  value_offsets_.clear();
  // Cursors remember the last piece of a map: events come in the order of time.
  ClockMapCursor clock(*stream.clock);
  devices_.Begin(stream.clocks, *stream.identity);
  size_t event = range.first;
  for (; event < chunk_.size(); ++event) {
    // A cut between events of equal time would split them over two windows, and the reader could no
    // longer sort them by length. It also guarantees progress: the first event is always included.
    const bool can_cut = event > range.first && timestamps[event] != timestamps[event - 1];
    if (can_cut && event - range.first >= range.events_max) break;
    if (plans_[chunk_.shape_of()[event]].action == Action::kSkip) continue;
    // Later events have later raw times, so none can begin before this, whatever a device's map
    // does.
    const uint64_t earliest_raw_ns = SubtractSaturating(timestamps[event], stream.shift_max_ns);
    const uint64_t earliest_ns = Reference(clock, earliest_raw_ns);
    if (earliest_ns >= filter_.window_end_ns) {
      event = chunk_.size();
      break;
    }
    if (can_cut && earliest_ns >= range.until_ns) break;
    RETURN_IF_ERROR(ExtractEvent(stream, *names, event, clock));
  }
  auto window = std::make_shared<ChunkWindow>();
  window->records = records_;
  window->values = values_;
  window->next_event = event;
  // Pointers are set only now: records_ and values_ grew, and the window has its own copies.
  for (size_t i = 0; i < window->records.size(); ++i) {
    window->records[i].names = names.get();
    window->records[i].values = window->values.data() + value_offsets_[i];
  }
  window->names = std::move(names);
  if (stream.shift_max_ns > 0) {
    // A device's map may reverse the order of events that different clocks stamped.
    std::stable_sort(window->records.begin(), window->records.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
  }
  return window;
}

// Appends one value for each key of the event's shape.
void RecordExtractor::AppendValues(size_t event) {
  const uint32_t shape = chunk_.shape_of()[event];
  const uint32_t row = chunk_.row_of()[event];
  const auto keys = static_cast<uint32_t>(chunk_.shapes()[shape].keys.size());
  for (uint32_t key = 0; key < keys; ++key) values_.push_back(chunk_.column(shape, key)[row]);
}

absl::Status RecordExtractor::ExtractEvent(const StreamContext& stream, const ChunkNames& names,
                                           size_t event, ClockMapCursor& clock) {
  const uint16_t shape = chunk_.shape_of()[event];
  const ShapePlan& plan = plans_[shape];
  const bool is_paired = pairing_.partner()[event] != SpanPairing::kNone;
  // It is part of its start's record.
  if (plan.action == Action::kStop && is_paired) return absl::OkStatus();
  const size_t values_begin = values_.size();
  const uint64_t raw_ns = chunk_.timestamp_ns()[event];
  TimelineRecord record;
  record.start_ns = record.end_ns = Reference(clock, raw_ns);
  record.id = chunk_.id()[event];
  record.thread_id = chunk_.thread_id()[event];
  record.stream = stream.number;
  record.shape = names.shapes[shape];
  record.kind = plan.kind;
  if (plan.is_anomalous) record.flags |= kInvalidLength;
  const uint16_t stop = is_paired ? pairing_.partner()[event] : SpanPairing::kNone;
  if (plan.action == Action::kStart && is_paired) {
    record.end_ns = Reference(clock, chunk_.timestamp_ns()[stop]);
    // Most spans of a chunk that begins before the window end there. A device's clock may move
    // them.
    if (!plan.device_key && !IsInside(record)) return absl::OkStatus();
  }
  AppendValues(event);
  if (plan.action == Action::kStart && is_paired) {
    if (plans_[chunk_.shape_of()[stop]].is_anomalous) record.flags |= kInvalidLength;
    record.stop_shape = names.shapes[chunk_.shape_of()[stop]];
    AppendValues(stop);
  } else if (plan.action == Action::kComplete) {
    record.end_ns =
        Reference(clock, AddSaturating(raw_ns, values_[values_begin + plan.duration_key]));
  }
  // The order of the following values is that of TimelineRecord's accessors.
  if (plan.has_nrta_seq_id) {
    record.flags |= kHasNrtaSeqId;
    values_.push_back(chunk_.nrta_seq_id()[event]);
  }
  if (!stream.clock->is_identity()) {
    record.flags |= kHasRawStart;
    values_.push_back(raw_ns);
  }
  if (plan.device_key && stream.clocks != nullptr) {
    UseDeviceClock(stream, event, values_begin, clock, record);
  }
  if (plan.action == Action::kStop) {
    record.span_id = chunk_.tracking_id()[event];
    // The span was yielded with an end by the device's clock; its stop has to be there, too.
    // span_id holds the tracking id until Resolve.
    const auto end_ns = stream.index->CarriedEnd({plan.type_hash, record.span_id}, raw_ns);
    if (end_ns) record.start_ns = record.end_ns = *end_ns;
  }
  if (plan.action == Action::kStart && !is_paired) {
    return FinishStart(stream, event, values_begin, clock, record);
  }
  Keep(record, values_begin);
  return absl::OkStatus();
}

// Returns the physical core, the sequence and the execution of the event, as far as it has them.
// DeviceTimes finds the device's map by them.
DeviceTimes::Place RecordExtractor::PlaceOf(size_t event) const {
  const ShapePlan& plan = plans_[chunk_.shape_of()[event]];
  DeviceTimes::Place place;
  if (plan.core_key) place.physical = ValueOf(event, *plan.core_key);
  if (plan.has_sequence) place.ring.sequence = chunk_.nc_local_id()[event];
  if (plan.execution_key) place.ring.exec_id = ValueOf(event, *plan.execution_key);
  return place;
}

std::optional<DeviceTimes::HostTime> RecordExtractor::DeviceEnd(size_t event, uint64_t raw_ns) {
  const uint64_t start_device_ns = ValueOf(event, *plans_[chunk_.shape_of()[event]].device_key);
  const uint64_t length_ns = SubtractSaturating(raw_ns, chunk_.timestamp_ns()[event]);
  return devices_.Map(PlaceOf(event), AddSaturating(start_device_ns, length_ns), raw_ns);
}

void RecordExtractor::UseDeviceClock(const StreamContext& stream, size_t event, size_t values_begin,
                                     ClockMapCursor& clock, TimelineRecord& record) {
  // Until the device's map is found to apply, the times are those of the runtime.
  record.flags |= kVendorClock;
  if (stream.shift_max_ns == 0) return;  // no device has a map
  const uint64_t raw_ns = chunk_.timestamp_ns()[event];
  const ShapePlan& plan = plans_[chunk_.shape_of()[event]];
  const DeviceTimes::Place place = PlaceOf(event);
  const auto start = devices_.Map(place, values_[values_begin + *plan.device_key], raw_ns);
  // A bare stop is shown at the end of its span, which CarriedEnd knows.
  if (!start || plan.action == Action::kStop) return;
  std::optional<DeviceTimes::HostTime> end = start;
  if (record.has_stop()) {
    const uint16_t stop = pairing_.partner()[event];
    const auto stop_key = plans_[chunk_.shape_of()[stop]].device_key;
    const uint64_t stop_raw_ns = chunk_.timestamp_ns()[stop];
    end = stop_key ? devices_.Map(place, ValueOf(stop, *stop_key), stop_raw_ns)
                   : DeviceEnd(event, stop_raw_ns);
  } else if (plan.action == Action::kComplete) {
    end = DeviceEnd(event, AddSaturating(raw_ns, values_[values_begin + plan.duration_key]));
  }
  if (!end) return;
  record.start_ns = Reference(clock, start->host_ns);
  // Two stamps may be mapped by different pieces, so that a short span's end could precede its
  // start.
  record.end_ns = std::max(record.start_ns, Reference(clock, end->host_ns));
  record.flags = static_cast<uint8_t>((record.flags & ~kVendorClock) | kDeviceClock | kHasRawStart);
  if (stream.clock->is_identity()) values_.push_back(raw_ns);
  values_.push_back(start->host_ns);
  values_.push_back(start->bound_ns);
}

absl::Status RecordExtractor::FinishStart(const StreamContext& stream, size_t event,
                                          size_t values_begin, ClockMapCursor& clock,
                                          TimelineRecord& record) {
  const StreamIndex::SpanKey key{plans_[chunk_.shape_of()[event]].type_hash,
                                 chunk_.tracking_id()[event]};
  ASSIGN_OR_RETURN(const StreamIndex::StopSearch search,
                   stream.index->TakeStop(key, chunk_.timestamp_ns()[event]));
  record.span_id = next_span_id_++;
  std::optional<uint64_t> device_end_ns;
  if (search.stop_raw_ns) {
    record.end_ns = Reference(clock, *search.stop_raw_ns);
    record.flags |= kStopFollows;
    if ((record.flags & kDeviceClock) != 0) {
      if (const auto end = DeviceEnd(event, *search.stop_raw_ns)) {
        record.end_ns = std::max(record.start_ns, Reference(clock, end->host_ns));
        device_end_ns = record.end_ns;
      } else {
        // The device's map does not reach the stop: back to the runtime's times for both, as a
        // start and an end by different clocks would make a wrong length.
        record.start_ns = Reference(clock, chunk_.timestamp_ns()[event]);
        record.flags = static_cast<uint8_t>((record.flags & ~kDeviceClock) | kVendorClock);
      }
    }
  } else {
    record.end_ns = std::max(record.start_ns, stream.known_until_ns);
    record.flags |= kOpen;
  }
  // Also if the record is not kept below: its stop must not become a span that lost its start.
  stream.index->Carry(key, record.span_id, search, device_end_ns);
  const bool is_kept = Keep(record, values_begin);
  if (is_kept && !search.stop_raw_ns) ++counts_.open_spans;
  if (search.given_up) ++counts_.pairing_given_up;
  return absl::OkStatus();
}

bool RecordExtractor::IsInside(const TimelineRecord& record) const {
  return record.start_ns < filter_.window_end_ns &&
         (record.end_ns > filter_.window_start_ns ||
          (record.end_ns == filter_.window_start_ns && record.start_ns == record.end_ns));
}

bool RecordExtractor::Keep(TimelineRecord& record, size_t values_begin) {
  // Bare stops are kept whatever their time, because Resolve needs each of them to end its span.
  const bool is_bare_stop = record.kind == RecordKind::kStopAttributes;
  // The values of a record that is not kept are removed again.
  if (!IsInside(record) && !is_bare_stop) {
    values_.resize(values_begin);
    return false;
  }
  counts_.events += record.has_stop() ? 2 : 1;
  if (record.kind == RecordKind::kSpan) ++counts_.spans;
  if (record.kind == RecordKind::kInstant || record.kind == RecordKind::kOther) ++counts_.instants;
  records_.push_back(record);
  value_offsets_.push_back(values_begin);
  return true;
}

bool RecordExtractor::Resolve(TimelineRecord& record, StreamIndex& index) {
  const auto span_id =
      index.TakeCarried({HashEventType(record.start().event_type), record.span_id});
  if (span_id) {
    record.span_id = *span_id;
    return true;
  }
  // Before the window its start is probably not lost but outside of what was read.
  if (record.start_ns < filter_.window_start_ns) return false;
  record.kind = RecordKind::kSpan;
  record.flags |= kStartLost;
  ++counts_.spans;
  ++counts_.start_lost_spans;
  return true;
}

}  // namespace neurontrace
