// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/event_row.h"

#include <charconv>
#include <limits>
#include <utility>

#include "aggregator/export/json/json_members.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/row_source.h"

namespace neurontrace {
namespace {

// Returns the whole text as a number, or nullopt if it is not one or does not fit.
template <typename Number>
std::optional<Number> WholeNumber(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Versions of the runtime write some numbers as texts.
std::optional<uint64_t> AttributeNumber(const ShapeKey& key, uint64_t value,
                                        const TimelineRecord& record) {
  if (key.type == ValueType::kUint) return value;
  if (key.type == ValueType::kString) return WholeNumber<uint64_t>(record.text(value));
  return std::nullopt;
}

// Returns nullopt for a value that int64 cannot hold, unlike Signed64, as these are ids rather than
// times.
std::optional<int64_t> Signed(std::optional<uint64_t> value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value || *value > kMax) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// Returns whether the record has no length because of its kind.
bool IsPoint(const TimelineRecord& record) { return record.kind != RecordKind::kSpan; }

}  // namespace

EventRowMaker::EventRowMaker(const TimelineHeader& header)
    : header_(header), bounds_(header.streams) {
  for (const EarlierPreparation& earlier : header.earlier) {
    models_.Record(earlier.stream, earlier.exec_id, earlier.model_name);
  }
  for (const TimelineStream& stream : header.streams) {
    // Decided once for each stream: a look-up by worker for each event would be slow.
    is_known_.push_back(header.clocks != nullptr && !header.raw_clocks &&
                        header.clocks->Find(stream.description.identity.worker) != nullptr);
  }
}

void EventRowMaker::Fill(const TimelineRecord& record, EventRow& row) {
  // Keeps the capacity of the longest text from row to row.
  row = EventRow{.id = row.id, .attributes = std::move(row.attributes)};
  row.attributes.clear();
  // First the columns that every event has, then those of its source, then attributes and clock.
  row.start_ns = record.start_ns;
  row.end_ns = record.end_ns;
  row.stream = record.stream;
  row.is_instant = IsPoint(record);
  row.is_open = (record.flags & kOpen) != 0;
  row.is_start_lost = (record.flags & kStartLost) != 0;
  const StreamKind kind = header_.streams[record.stream].description.identity.kind;
  const bool is_framework = HasFrameworkEvents(kind);
  if (kind == StreamKind::kAnnotation) {
    FillAnnotation(record, row);
  } else if (is_framework) {
    FillFramework(record, row);
  } else {
    FillNeuron(record, row);
  }
  AddAttributes(record, row);
  if (!is_framework) AddModel(record, row);
  if (record.has_stop()) AddStopAttributes(record.stop(), record.stop_values(), record, row);
  FillClock(record, row);
}

void EventRowMaker::FillName(const TimelineRecord& record, EventRow& row) {
  row.name = record.start().event_type;
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "name", &key);
  if (value != nullptr && key->type == ValueType::kString) row.name = record.text(*value);
}

void EventRowMaker::FillAnnotation(const TimelineRecord& record, EventRow& row) {
  row.source = ToString(RowSource::kAnnotation);
  row.category = record.start().event_type;
  FillName(record, row);
  row.process_id = header_.streams[record.stream].description.identity.worker.pid;
  row.thread_id = Signed(record.thread_id);
}

// The names of the process and the thread come from the file's metadata events.
void EventRowMaker::FillFramework(const TimelineRecord& record, EventRow& row) {
  row.source = ToString(RowSource::kFramework);
  row.category = FrameworkCategory(record.start().event_type);
  FillName(record, row);
  const std::string process = FrameworkProcessId(record);
  const std::string thread = FrameworkThreadId(record);
  row.process_id = WholeNumber<int64_t>(process);
  row.thread_id = WholeNumber<int64_t>(thread);
  // A thread id that the file gave as a number takes precedence.
  if ((record.start().present & FieldBit(Field::kThreadId)) != 0) {
    row.thread_id = Signed(record.thread_id);
  }
  const FrameworkNames& names = header_.framework_names[record.stream];
  const auto process_name = names.processes.find(process);
  row.process_name = process_name != names.processes.end() ? process_name->second.name : "";
  // An id that is not a number would otherwise be lost: its column holds numbers only.
  if (row.process_name.empty() && !row.process_id) row.process_name = process;
  const auto thread_name = names.threads.find({process, thread});
  row.thread_name = thread_name != names.threads.end() ? thread_name->second : "";
  if (row.thread_name.empty() && !row.thread_id) row.thread_name = thread;
}

void EventRowMaker::FillNeuron(const TimelineRecord& record, EventRow& row) {
  row.name = record.start().event_type;
  row.source = ToString(RowSourceOf(record.start().event_type));
  row.process_id = header_.streams[record.stream].description.identity.worker.pid;
  row.thread_id = Signed(record.thread_id);
  // An id beyond the column's signed type is kept among the attributes.
  if (!row.thread_id) AppendJsonNumber("thread_id", record.thread_id, row.attributes);
  if ((record.start().present & FieldBit(Field::kId)) != 0) row.event_id = record.id;
  if ((record.flags & kHasNrtaSeqId) != 0) row.nrta_seq_id = record.nrta_seq_id();
}

void EventRowMaker::FillClock(const TimelineRecord& record, EventRow& row) {
  if (header_.streams[record.stream].description.has_own_time()) {
    row.clock = "own";
    row.raw_start_ns = record.raw_start_ns();
    return;
  }
  if (!is_known_[record.stream]) return;
  const bool is_device = (record.flags & kDeviceClock) != 0;
  const bool is_vendor = (record.flags & kVendorClock) != 0;
  // Tells which promise the bound is: the device's and the host's, none, or the host's.
  row.clock = is_device ? "device" : is_vendor ? "vendor" : "host";
  row.bound_ns = bounds_.Of(record);
  if (record.raw_start_ns() != record.start_ns) row.raw_start_ns = record.raw_start_ns();
}

void EventRowMaker::AddAttributes(const TimelineRecord& record, EventRow& row) {
  using enum RowPlan::Use;
  const Shape& shape = record.start();
  const auto values = record.start_values();
  const bool is_framework =
      HasFrameworkEvents(header_.streams[record.stream].description.identity.kind);
  const RowPlan& plan = plans_.Of(*record.shape, is_framework, record.kind == RecordKind::kSpan);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    switch (plan.keys[i].use) {
      case kStructure:
      case kModelName:
        continue;
      case kPhysicalCore:
        row.physical_core = Signed(AttributeNumber(key, values[i], record));
        break;
      case kExecId:
        row.exec_id = AttributeNumber(key, values[i], record);
        break;
      case kFrameworkStream:
        row.framework_stream = AttributeText(key, values[i], record.names->strings);
        break;
      case kAttribute:
        break;
    }
    row.attributes += plan.keys[i].json;
    AppendAttributeValue(key, values[i], record, row.attributes);
  }
}

// Only for events of the runtime: frameworks have no executions.
void EventRowMaker::AddModel(const TimelineRecord& record, EventRow& row) {
  const auto model = models_.Of(record);
  if (!model) return;
  AppendJsonKey("model_name", row.attributes);
  if (model->key != nullptr) {
    AppendAttributeValue(*model->key, model->value, record, row.attributes);
  } else {
    AppendAsJsonString(model->name, row.attributes);
  }
}

// Attributes of the start are written already, so that only the stop's can be renamed.
void EventRowMaker::AddStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                                      const TimelineRecord& record, EventRow& row) {
  JsonMembers members(row.attributes);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool is_device_time = key.name == "nc_timestamp_ns";
    members.AppendFreeKey(is_device_time ? "nc_stop_timestamp_ns" : key.name, "stop_");
    AppendAttributeValue(key, values[i], record, row.attributes);
  }
}

void EventRowMaker::AddStop(const TimelineRecord& record, EventRow& row) {
  AddStopAttributes(record.start(), record.start_values(), record, row);
}

// Closes the object of attributes, so that it must be called once for each row.
void EventRowMaker::Write(EventRow& row, TableWriter& table) const {
  const TimelineStream& stream = header_.streams[row.stream];
  const StreamIdentity& identity = stream.description.identity;
  const auto core = identity.has_core() ? std::optional<int64_t>(identity.nc_idx) : std::nullopt;
  if (!row.attributes.empty()) {
    row.attributes.front() = '{';  // it was a comma
    row.attributes += '}';
  }
  table.Int(row.id).Text(row.name).Count(row.start_ns).Count(row.end_ns);
  table.Count(row.end_ns - row.start_ns).Text(row.source).Text(identity.worker.instance_id);
  table.Int(row.process_id).Int(row.thread_id).Int(core).Int(row.physical_core);
  table.Int(stream.rank.worker_gid).Texts(row.flow_ids).TextOrNull(row.framework_stream);
  table.TextOrNull(row.attributes).Uint(row.event_id).Uint(row.exec_id).Uint(row.nrta_seq_id);
  table.TextOrNull(row.category).Bool(row.is_instant).Bool(row.is_open).Bool(row.is_start_lost);
  table.TextOrNull(row.clock).Int(Signed(row.bound_ns)).Uint(row.raw_start_ns);
  table.TextOrNull(identity.worker.container_id).TextOrNull(row.process_name);
  table.TextOrNull(row.thread_name);
}

}  // namespace neurontrace
