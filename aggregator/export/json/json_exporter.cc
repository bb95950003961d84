// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/json_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "aggregator/derive/memory_use.h"
#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/json/json_members.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/row_source.h"
#include "aggregator/export/side_reader.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/base/status.h"
#include "lib/trace/device_profile.h"
#include "lib/trace/host_samples.h"
#include "lib/trace/ids.h"

namespace neurontrace {
namespace {

// How it works: events are appended to out_ in the order of the timeline, and the sink gets the
// text in pieces. Lists that need another reading of the capture follow the events, because the
// batches must be complete before the source can be read again.

// Returns whether JSON writes the value as a number.
bool IsNumber(const ShapeKey& key) {
  return key.type == ValueType::kUint || key.type == ValueType::kInt ||
         key.type == ValueType::kDouble;
}

// Appends ,"key":number. Returns false if the record has no number of that name.
bool AppendSampleNumber(std::string_view key, const TimelineRecord& record, std::string_view name,
                        std::string& out) {
  const ShapeKey* about = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, name, &about);
  if (value == nullptr || !IsNumber(*about)) return false;
  AppendJsonKey(key, out);
  AppendAttributeValue(*about, *value, record, out);
  return true;
}

// Appends the begin of an object of the vendor's lists of samples.
void AppendSample(const StreamIdentity& stream, const TimelineRecord& record, uint64_t duration_ns,
                  std::string& out) {
  out += "{\"timestamp\":";
  out += std::to_string(record.start_ns);
  AppendJsonNumber("duration", duration_ns, out);
  AppendJsonText("instance_id", stream.worker.instance_id, out);
}

// Appends a host's sample (lib/trace/host_samples.h) as an object of the vendor's `cpu_util`.
// Appends nothing and returns false if the record lacks what such an object must have.
// AppendMemoryUsage does the same for `mem_usage`.
bool AppendCpuUtil(const StreamIdentity& stream, const TimelineRecord& record, std::string& out) {
  const size_t before = out.size();
  const ShapeKey* about = nullptr;
  const uint64_t* duration = FindAttribute(record, KeyScope::kData, kHostDurationNsKey, &about);
  const bool has_duration = duration != nullptr && about->type == ValueType::kUint;
  AppendSample(stream, record, has_duration ? *duration : 0, out);
  const uint64_t* cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  const bool has_cpu = cpu != nullptr;
  if (has_cpu) {
    AppendJsonText("cpu_id", AttributeText(*about, *cpu, record.names->strings), out);
  }
  if (!has_cpu || !AppendSampleNumber("util", record, kHostUtilPercentKey, out)) {
    out.resize(before);
    return false;
  }
  out += '}';
  return true;
}

bool AppendMemoryUsage(const StreamIdentity& stream, const TimelineRecord& record,
                       std::string& out) {
  const size_t before = out.size();
  AppendSample(stream, record, 0, out);
  const bool has_percent = AppendSampleNumber("percent_usage", record, kHostUsedPercentKey, out);
  const bool has_bytes = AppendSampleNumber("usage", record, kHostUsedBytesKey, out);
  if (!has_percent && !has_bytes) {
    out.resize(before);
    return false;
  }
  out += '}';
  return true;
}

// Appends what is in use of a device's memory, under the column names of the vendor's
// SystemProfileHbmUsage.
void AppendHbmUsage(const HbmIdentity& memory, const HbmSample& sample, std::string& out) {
  // Made once: a capture can have millions of samples.
  static const std::array<std::string, kHbmCategories> kKeys = [] {
    std::array<std::string, kHbmCategories> keys;
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i] = std::string(ToString(static_cast<HbmCategory>(i))) + "_bytes";
    }
    return keys;
  }();
  out += "{\"timestamp\":";
  out += std::to_string(sample.time_ns);
  AppendJsonText("instance_id", memory.instance_id, out);
  AppendJsonNumber("device_idx", memory.device, out);
  AppendJsonNumber("hbm_idx", memory.hbm, out);
  AppendJsonNumber("total_bytes", sample.total_bytes, out);
  for (size_t i = 0; i < kHbmCategories; ++i) {
    AppendJsonNumber(kKeys[i], sample.category_bytes[i], out);
  }
  out += '}';
}

// Appends an object of the vendor's `device_profile_list`.
void AppendDeviceProfile(const DeviceProfile& profile, std::string& out) {
  out += "{\"device_profile_name\":";
  AppendAsJsonString(profile.name, out);
  AppendJsonText("instance_id", profile.instance_id, out);
  AppendJsonNumber("process_id", profile.process_id, out);
  AppendJsonNumber("nc_id", profile.nc_id, out);
  if (profile.session_id) AppendJsonNumber("session_id", *profile.session_id, out);
  AppendJsonText("path", profile.path, out);
  out += '}';
}

// Text that is collected before the sink is called.
constexpr size_t kFlushBytes = 256u << 10;

// The vendor's keys and ours, which a recorded attribute of the same name must not take.
constexpr std::array<std::string_view, 21> kOwnKeys = {
    "name",       "timestamp",   "duration",           "timestamp_unit", "id",       "instance_id",
    "nc_idx",     "lnc_idx",     "process_id",         "thread_id",      "category", "phase",
    "worker_gid", "open",        "trace_event_source", "start_lost",     "clock",    "eps_ns",
    "ts_raw_ns",  "nrta_seq_id", kOwnTimeKey};
// Attributes of framework events that became members of their own.
constexpr std::array<std::string_view, 4> kFrameworkStructure = {"name", "pid", "tid", "dur_ns"};

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The vendor's list of events has no place for arrows and counters.
bool HasPlace(RecordKind kind) {
  return kind == RecordKind::kSpan || kind == RecordKind::kInstant || kind == RecordKind::kOther;
}

// Returns whether one of the keys has the name, whatever its scope.
bool HasKey(std::span<const ShapeKey> keys, std::string_view name) {
  return std::any_of(keys.begin(), keys.end(),
                     [name](const ShapeKey& key) { return key.name == name; });
}

}  // namespace

// Models that executions in the window run may have been prepared before it.
absl::Status JsonExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  waiting_.Begin(header);
  for (const EarlierPreparation& earlier : header.earlier) {
    models_.Record(earlier.stream, earlier.exec_id, earlier.model_name);
  }
  stream_fields_.resize(header.streams.size());
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  clocks_json_ = clocks.Json();
  if (clocks.is_aligned() || (header.clock_arguments && !header.raw_clocks)) {
    // Without aligned times, bounds are written only if they are requested.
    bounds_.emplace(header.streams);
  }
  out_ = "{\"trace_event\":[";
  return Flush();
}

// Stops that should have come before this batch will not come: their spans are written without
// them.
absl::Status JsonExporter::Write(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    RecordMemoryEvent(*record);
    WriteRecord(*record);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  while (const auto late = waiting_.TakeLate(batch.begin_ns)) {
    EmitObject(*late);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  return absl::OkStatus();
}

void JsonExporter::EmitObject(std::string_view object) {
  out_ += has_event_ ? ",\n" : "\n";
  has_event_ = true;
  out_ += object;
  out_ += '}';
}

void JsonExporter::WriteRecord(const TimelineRecord& record) {
  if (record.kind == RecordKind::kStopAttributes) {
    auto object = waiting_.Take(record.span_id);
    if (!object) return;
    AppendStopAttributes(record.start(), record.start_values(), record, nullptr, *object);
    EmitObject(*object);
    return;
  }
  if (!HasPlace(record.kind)) return;
  first_ns_ = std::min(first_ns_, record.start_ns);
  last_ns_ = std::max(last_ns_, record.end_ns);
  object_.clear();
  AppendEvent(record, object_);
  if (waiting_.Admits(record, object_.size())) {
    waiting_.Add(record, object_, object_.size());
  } else {
    EmitObject(object_);
  }
}

// What these events report about memory has a list of its own after all events: the range is read
// again.
void JsonExporter::RecordMemoryEvent(const TimelineRecord& record) {
  const DerivedType type = fields_.Of(*record.shape).type;
  if (type != DerivedType::kAllocate && type != DerivedType::kDeallocate) return;
  first_memory_ns_ = std::min(first_memory_ns_, record.start_ns);
  last_memory_ns_ = std::max(last_memory_ns_, record.end_ns);
}

// The text is appended to every event of the stream, up to millions of times.
const std::string& JsonExporter::StreamFields(uint32_t stream) {
  std::string& fields = stream_fields_[stream];
  if (!fields.empty()) return fields;
  const TimelineStream& about = header_->streams[stream];
  const StreamIdentity& identity = about.description.identity;
  AppendJsonText("instance_id", identity.worker.instance_id, fields);
  if (identity.kind != StreamKind::kFramework) {
    // A text, as in the vendor's files.
    AppendJsonText("process_id", fmt::format("{}", identity.worker.pid), fields);
  }
  if (identity.has_core()) {
    AppendJsonNumber("lnc_idx", identity.nc_idx, fields);
    AppendJsonNumber("nc_idx", identity.nc_idx, fields);
  }
  if (about.rank.worker_gid) AppendJsonNumber("worker_gid", *about.rank.worker_gid, fields);
  return fields;
}

// The object stays open: EmitObject closes it once the stop is known.
void JsonExporter::AppendEvent(const TimelineRecord& record, std::string& out) {
  const StreamKind kind = header_->streams[record.stream].description.identity.kind;
  const bool is_framework = HasFrameworkEvents(kind);
  std::string_view name = record.start().event_type;
  if (is_framework) {
    const ShapeKey* key = nullptr;
    const uint64_t* value = FindAttribute(record, KeyScope::kTop, "name", &key);
    if (value != nullptr && key->type == ValueType::kString) name = record.text(*value);
  }
  out += "{\"name\":";
  AppendAsJsonString(name, out);
  AppendJsonNumber("timestamp", record.start_ns, out);
  AppendJsonNumber("duration", record.end_ns - record.start_ns, out);
  out += ",\"timestamp_unit\":\"ns\"";
  out += StreamFields(record.stream);
  if (kind == StreamKind::kAnnotation) {
    AppendAnnotationFields(record, out);
  } else if (is_framework) {
    AppendFrameworkFields(record, out);
  } else {
    AppendNeuronFields(record, out);
  }
  if (record.kind != RecordKind::kSpan) AppendJsonText("phase", "instant", out);
  AppendAttributes(record, out);
  if (record.has_stop()) {
    AppendStopAttributes(record.stop(), record.stop_values(), record, &record.start(), out);
  }
  if ((record.flags & kHasNrtaSeqId) != 0)
    AppendJsonNumber("nrta_seq_id", record.nrta_seq_id(), out);
  if ((record.flags & kOpen) != 0) out += ",\"open\":true";
  if ((record.flags & kStartLost) != 0) out += ",\"start_lost\":true";
  if (header_->streams[record.stream].description.has_own_time()) {
    AppendJsonNumber(kOwnTimeKey, record.raw_start_ns(), out);
  } else if (bounds_) {
    AppendClock(record, out);
  }
}

// A bound that is not known has no member, as 0 would promise exact times.
void JsonExporter::AppendClock(const TimelineRecord& record, std::string& out) {
  if ((record.flags & kVendorClock) != 0) AppendJsonText("clock", "vendor", out);
  if (const auto bound_ns = bounds_->Of(record)) AppendJsonNumber("eps_ns", *bound_ns, out);
  if (header_->clock_arguments) AppendJsonNumber("ts_raw_ns", record.raw_start_ns(), out);
}

// A number that the file gives as a number stays one; ids that are texts stay texts.
void JsonExporter::AppendFrameworkFields(const TimelineRecord& record, std::string& out) {
  AppendJsonText("process_id", FrameworkProcessId(record), out);
  if ((record.start().present & FieldBit(Field::kThreadId)) != 0) {
    AppendJsonNumber("thread_id", record.thread_id, out);
  } else {
    AppendJsonText("thread_id", FrameworkThreadId(record), out);
  }
  AppendJsonText("trace_event_source", ToString(RowSource::kFramework), out);
  AppendJsonText("category", record.start().event_type, out);
}

// The process is known from the stream.
void JsonExporter::AppendAnnotationFields(const TimelineRecord& record, std::string& out) {
  AppendJsonNumber("thread_id", record.thread_id, out);
  AppendJsonText("trace_event_source", ToString(RowSource::kAnnotation), out);
  AppendJsonText("category", record.start().event_type, out);
}

void JsonExporter::AppendNeuronFields(const TimelineRecord& record, std::string& out) {
  AppendJsonNumber("thread_id", record.thread_id, out);
  if ((record.start().present & FieldBit(Field::kId)) != 0) AppendJsonNumber("id", record.id, out);
  AppendJsonText("trace_event_source", ToString(RowSourceOf(record.start().event_type)), out);
}

// Recorded keys are free, while an object must not have one key twice. Keys of this program and
// earlier keys of the same shape take precedence, and the later one is renamed.
void JsonExporter::AppendAttributes(const TimelineRecord& record, std::string& out) {
  const Shape& shape = record.start();
  const auto values = record.start_values();
  const bool is_framework =
      HasFrameworkEvents(header_->streams[record.stream].description.identity.kind);
  JsonMembers members(out);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool is_top = key.scope == KeyScope::kTop;
    if (is_framework && is_top && Contains(kFrameworkStructure, key.name)) continue;
    if (key.name == "model_name" && key.scope == KeyScope::kData) continue;
    // The vendor's name for the device's stamp of a span; its stop's is nc_stop_timestamp_ns.
    if (key.name == "nc_timestamp_ns" && record.kind == RecordKind::kSpan) {
      AppendJsonKey("nc_start_timestamp_ns", out);
    } else if (Contains(kOwnKeys, key.name) || HasKey(std::span(shape.keys).first(i), key.name)) {
      members.AppendRenamedKey(key.name, is_top ? "top." : "data.");
    } else {
      AppendJsonKey(key.name, out);
    }
    AppendAttributeValue(key, values[i], record, out);
  }
  AppendModel(record, out);
}

// With the start's shape at hand, collisions are found by comparing keys. Without it the written
// object itself must be searched, which JsonMembers does.
void JsonExporter::AppendStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                                        const TimelineRecord& record, const Shape* start,
                                        std::string& out) {
  JsonMembers members(out);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    if (key.name == "nc_timestamp_ns") {
      AppendJsonKey("nc_stop_timestamp_ns", out);
    } else if (Contains(kOwnKeys, key.name) ||
               (start != nullptr && HasKey(start->keys, key.name))) {
      members.AppendRenamedKey(key.name, "stop_");
    } else if (start == nullptr || HasKey(std::span(shape.keys).first(i), key.name)) {
      members.AppendFreeKey(key.name, "stop_");
    } else {
      AppendJsonKey(key.name, out);
    }
    AppendAttributeValue(key, values[i], record, out);
  }
}

void JsonExporter::AppendModel(const TimelineRecord& record, std::string& out) {
  const auto model = models_.Of(record);
  if (!model) return;
  AppendJsonKey("model_name", out);
  if (model->key != nullptr) {
    AppendAttributeValue(*model->key, model->value, record, out);
  } else {
    AppendAsJsonString(model->name, out);
  }
}

absl::Status JsonExporter::AppendElement(std::string_view element, bool& is_first) {
  out_ += is_first ? "\n" : ",\n";
  is_first = false;
  out_ += element;
  return FlushIfLarge();
}

absl::Status JsonExporter::WriteHostSamples(ExportSummary& summary) {
  bool is_first = true;
  const auto write_all = [&](std::string_view type, auto append) -> absl::Status {
    is_first = true;
    return header_->side_reader->ReadHostSamples(
        type,
        [&](const StreamIdentity& stream, const TimelineRecord& record) {
          object_.clear();
          if (!append(stream, record, object_)) return absl::OkStatus();
          return AppendElement(object_, is_first);
        },
        summary);
  };
  // Both lists need a reading of their own, because samples may be as many as the events. They are
  // closed by what follows them, so that each is written while it is read.
  out_ += "],\n\"mem_usage\":[";
  RETURN_IF_ERROR(write_all(kHostMemoryEventType, AppendMemoryUsage));
  out_ += "],\n\"cpu_util\":[";
  return write_all(kHostCpuEventType, AppendCpuUtil);
}

// Nothing is read if no event reported memory: the list is then empty.
absl::Status JsonExporter::WriteHbmSamples(ExportSummary& summary) {
  out_ += "],\n\"hbm_usage\":[";
  if (first_memory_ns_ > last_memory_ns_) return absl::OkStatus();
  bool is_first = true;
  return header_->side_reader->ReadHbmSamples(
      first_memory_ns_, last_memory_ns_,
      [&](const HbmIdentity& memory, const HbmSample& sample) {
        object_.clear();
        AppendHbmUsage(memory, sample, object_);
        return AppendElement(object_, is_first);
      },
      summary);
}

void JsonExporter::AppendWarnings(const std::vector<std::string>& warnings) {
  out_ += "],\n\"warnings\":[";
  bool is_first = true;
  ForEachWarning(*header_, warnings, [&](std::string_view message, std::string_view category) {
    out_ += is_first ? "\n{\"message\":" : ",\n{\"message\":";
    is_first = false;
    AppendAsJsonString(message, out_);
    AppendJsonText("category", category, out_);
    out_ += '}';
  });
}

void JsonExporter::AppendDeviceProfiles() {
  out_ += "],\n\"device_profile_list\":[";
  std::string_view between = "\n";
  for (const DeviceProfile& profile : header_->device_profiles) {
    out_ += between;
    between = ",\n";
    AppendDeviceProfile(profile, out_);
  }
  out_ += "],\n";
}

// The vendor's metadata is a list with one element. Times are written twice: for people, and as
// texts of nanoseconds that a double cannot shorten.
void JsonExporter::AppendMetadata() {
  // Only now: it has the times of the first and the last event.
  const uint64_t first_ns = first_ns_ == UINT64_MAX ? 0 : first_ns_;
  out_ += "\"system_profile_metadata\":[{\"producer\":";
  AppendAsJsonString(fmt::format("neurontrace {}", NEURONTRACE_VERSION), out_);
  AppendJsonText("capture_id", header_->capture->id.ToString(), out_);
  AppendJsonText("capture_name", header_->capture->name, out_);
  AppendJsonText("first_ts", VendorTimeText(first_ns), out_);
  AppendJsonText("last_ts", VendorTimeText(last_ns_), out_);
  AppendJsonText("first_ts_ns", fmt::format("{}", first_ns), out_);
  AppendJsonText("last_ts_ns", fmt::format("{}", last_ns_), out_);
  AppendJsonKey("clocks", out_);
  out_ += clocks_json_;
  if (!header_->certificate_json.empty()) {
    AppendJsonKey("certificate", out_);
    out_ += header_->certificate_json;
  }
  out_ += "}]}\n";
}

// Each of these lists is closed by the function that writes the next one.
absl::Status JsonExporter::Finish(ExportSummary& summary) {
  while (const auto object = waiting_.TakeRest()) {
    EmitObject(*object);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  waiting_.Warn(summary);
  RETURN_IF_ERROR(WriteHostSamples(summary));
  RETURN_IF_ERROR(WriteHbmSamples(summary));
  AppendWarnings(summary.warnings);
  AppendDeviceProfiles();
  AppendMetadata();
  return Flush();
}

absl::Status JsonExporter::FlushIfLarge() {
  return out_.size() >= kFlushBytes ? Flush() : absl::OkStatus();
}

absl::Status JsonExporter::Flush() {
  const absl::Status status = sink_.Write(out_);
  bytes_flushed_ += out_.size();
  out_.clear();
  return status;
}

}  // namespace neurontrace
