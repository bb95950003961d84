// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/record_extractor.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kDurationKey = "dur_ns";

uint64_t AddSaturating(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

uint64_t Reference(ClockMapCursor& clock, uint64_t raw_ns) {
  return std::min(clock.ToReference(raw_ns), kTimeMaxNs);
}

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
  // What names rows and processes is no event: it is read beforehand, whatever the filter.
  if (shape.phase == Phase::kMetadata || !filter_.event_types.Selects(shape.event_type))
    return plan;
  plan.has_nrta_seq_id = (shape.present & FieldBit(Field::kNrtaSeqId)) != 0;
  plan.type_hash = HashEventType(shape.event_type);
  plan.kind = KindOf(shape.phase);
  switch (shape.phase) {
    case Phase::kStart:
      plan.action = Action::kStart;
      plan.kind = RecordKind::kSpan;
      return plan;
    case Phase::kStop:
      plan.action = Action::kStop;
      plan.kind = RecordKind::kStopAttributes;
      return plan;
    case Phase::kComplete:
      for (uint32_t key = 0; key < shape.keys.size(); ++key) {
        if (shape.keys[key].name != kDurationKey || shape.keys[key].type != ValueType::kUint)
          continue;
        plan = {Action::kComplete, RecordKind::kSpan, plan.has_nrta_seq_id, key, plan.type_hash};
        return plan;
      }
      [[fallthrough]];
    default:
      plan.action = Action::kPoint;
      return plan;
  }
}

std::shared_ptr<const ChunkNames> RecordExtractor::BuildNames(uint64_t serial) {
  auto names = std::make_shared<ChunkNames>();
  names->serial = serial;
  size_t bytes = 0;
  for (const auto& text : chunk_.strings()) bytes += text.size();
  names->text.reserve(bytes);  // so that the views into it stay
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
    const StreamContext& stream, std::shared_ptr<const ChunkNames> names, size_t first_event,
    size_t events_max) {
  const auto timestamps = chunk_.timestamp_ns();
  records_.clear();
  values_.clear();
  value_offsets_.clear();
  ClockMapCursor clock(*stream.clock);
  size_t event = first_event;
  for (; event < chunk_.size(); ++event) {
    if (event - first_event >= events_max && timestamps[event] != timestamps[event - 1]) break;
    if (plans_[chunk_.shape_of()[event]].action == Action::kSkip) continue;
    if (Reference(clock, timestamps[event]) >= filter_.window_end_ns) {
      event = chunk_.size();
      break;
    }
    RETURN_IF_ERROR(ExtractEvent(stream, *names, event, clock));
  }
  auto window = std::make_shared<ChunkWindow>();
  window->records = records_;
  window->values = values_;
  window->next_event = event;
  for (size_t i = 0; i < window->records.size(); ++i) {
    window->records[i].names = names.get();
    window->records[i].values = window->values.data() + value_offsets_[i];
  }
  window->names = std::move(names);
  return window;
}

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
  AppendValues(event);
  if (plan.action == Action::kStart && is_paired) {
    const uint16_t stop = pairing_.partner()[event];
    record.stop_shape = names.shapes[chunk_.shape_of()[stop]];
    record.end_ns = Reference(clock, chunk_.timestamp_ns()[stop]);
    AppendValues(stop);
  } else if (plan.action == Action::kComplete) {
    record.end_ns =
        Reference(clock, AddSaturating(raw_ns, values_[values_begin + plan.duration_key]));
  }
  if (plan.has_nrta_seq_id) {
    record.flags |= kHasNrtaSeqId;
    values_.push_back(chunk_.nrta_seq_id()[event]);
  }
  if (plan.action == Action::kStop) record.span_id = chunk_.tracking_id()[event];
  if (plan.action == Action::kStart && !is_paired) {
    return FinishStart(stream, event, clock, record);
  }
  Keep(record, values_begin);
  return absl::OkStatus();
}

absl::Status RecordExtractor::FinishStart(const StreamContext& stream, size_t event,
                                          ClockMapCursor& clock, TimelineRecord& record) {
  const Shape& shape = record.start();
  const size_t values_begin =
      values_.size() - shape.keys.size() - ((record.flags & kHasNrtaSeqId) != 0 ? 1 : 0);
  const StreamIndex::SpanKey key{plans_[chunk_.shape_of()[event]].type_hash,
                                 chunk_.tracking_id()[event]};
  ASSIGN_OR_RETURN(const StreamIndex::StopSearch search,
                   stream.index->TakeStop(key, chunk_.timestamp_ns()[event]));
  record.span_id = next_span_id_++;
  if (search.stop_raw_ns) {
    record.end_ns = Reference(clock, *search.stop_raw_ns);
    record.flags |= kStopFollows;
  } else {
    record.end_ns = std::max(record.start_ns, stream.known_until_ns);
    record.flags |= kOpen;
  }
  stream.index->Carry(key, record.span_id, search);
  const bool is_kept = Keep(record, values_begin);
  if (is_kept && !search.stop_raw_ns) ++counts_.open_spans;
  if (search.given_up) ++counts_.pairing_given_up;
  return absl::OkStatus();
}

bool RecordExtractor::Keep(TimelineRecord& record, size_t values_begin) {
  const bool is_bare_stop = record.kind == RecordKind::kStopAttributes;
  const bool is_inside =
      record.start_ns < filter_.window_end_ns &&
      (record.end_ns > filter_.window_start_ns ||
       (record.end_ns == filter_.window_start_ns && record.start_ns == record.end_ns));
  if (!is_inside && !is_bare_stop) {
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
    return !record.start().keys.empty();
  }
  if (record.start_ns < filter_.window_start_ns) return false;
  record.kind = RecordKind::kSpan;
  record.flags |= kStartLost;
  ++counts_.spans;
  ++counts_.start_lost_spans;
  return true;
}

}  // namespace neurontrace
