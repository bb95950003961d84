// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/json_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>

#include "aggregator/export/clock_report.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/row_source.h"
#include "base/status.h"
#include "trace/event_json.h"
#include "trace/fidelity.h"
#include "trace/given_way.h"

namespace neurontrace {
namespace {

constexpr size_t kFlushBytes = 256u << 10;

// Keys of the vendor's that an attribute of the same name must not take.
constexpr std::array<std::string_view, 19> kOwnKeys = {
    "name",        "timestamp", "duration",   "timestamp_unit", "id",
    "instance_id", "nc_idx",    "lnc_idx",    "process_id",     "thread_id",
    "category",    "phase",     "worker_gid", "open",           "trace_event_source",
    "start_lost",  "clock",     "eps_ns",     "ts_raw_ns"};
// Attributes of framework events that have become something else.
constexpr std::array<std::string_view, 4> kFrameworkStructure = {"name", "pid", "tid", "dur_ns"};

template <typename Names>
bool Contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Number>
void AppendNumber(std::string_view key, Number value, std::string& out) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out += ",\"";
  out += key;
  out += "\":";
  out.append(buffer, static_cast<size_t>(end - buffer));
}

void AppendText(std::string_view key, std::string_view value, std::string& out) {
  out += ",\"";
  out += key;
  out += "\":";
  AppendAsJsonString(value, out);
}

void AppendKey(std::string_view key, std::string& out) {
  out += ',';
  AppendAsJsonString(key, out);
  out += ':';
}

void AppendValue(const ShapeKey& key, uint64_t value, const TimelineRecord& record,
                 std::string& out) {
  if (key.type == ValueType::kString ||
      (key.type == ValueType::kJson && !IsJson(record.text(value)))) {
    AppendAsJsonString(record.text(value), out);
  } else if (key.type == ValueType::kJson) {
    out += record.text(value);
  } else {
    AppendJsonValue(key.type, {value, {}}, out);
  }
}

// Arrows and counters have no place among the vendor's events.
bool HasPlace(RecordKind kind) {
  return kind == RecordKind::kSpan || kind == RecordKind::kInstant || kind == RecordKind::kOther;
}

// The vendor's own sentence, with our numbers.
std::string DroppedText(const EventAccount& account) {
  return fmt::format(
      "{} trace events were dropped during capture (stored {} out of {}{} total events). Consider "
      "increasing buffer size, reducing trace duration, or filtering events.",
      account.lost_unknown
          ? (account.lost == 0 ? "An unknown number of" : fmt::format("{} or more", account.lost))
          : fmt::format("{}", account.lost),
      account.stored, account.lost_unknown ? "at least " : "", account.expected);
}

// "2025-12-18 15:35:56.592459482 +0000 UTC"
std::string TimeText(uint64_t epoch_ns) {
  const auto seconds = static_cast<time_t>(epoch_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09} +0000 UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     epoch_ns % 1'000'000'000);
}

// Whether the object has the key already: by the start's shape, or, where only the text is left of
// it, by that.
bool IsTaken(std::string_view name, const Shape* start, std::string_view object) {
  if (start == nullptr) {
    return object.find(fmt::format(",\"{}\":", name)) != std::string_view::npos;
  }
  return std::any_of(start->keys.begin(), start->keys.end(),
                     [name](const ShapeKey& key) { return key.name == name; });
}

}  // namespace

absl::Status JsonExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  stream_fields_.resize(header.streams.size());
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  clocks_json_ = clocks.Json();
  if (clocks.is_aligned() || (header.clock_arguments && !header.raw_clocks)) {
    bounds_.emplace(header.streams);
  }
  out_ = "{\"trace_event\":[";
  return Flush();
}

absl::Status JsonExporter::Write(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) {
    WriteRecord(*record);
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
    const auto waiting = waiting_.find(record.span_id);
    if (waiting == waiting_.end()) return;
    AppendStopAttributes(record.start(), record.start_values(), record, nullptr, waiting->second);
    EmitObject(waiting->second);
    waiting_.erase(waiting);
    return;
  }
  if (!HasPlace(record.kind)) return;
  first_ns_ = std::min(first_ns_, record.start_ns);
  last_ns_ = std::max(last_ns_, record.end_ns);
  object_.clear();
  AppendEvent(record, object_);
  if ((record.flags & kStopFollows) != 0 && waiting_.size() < kWaitingMax) {
    waiting_.emplace(record.span_id, object_);
  } else {
    EmitObject(object_);
  }
}

const std::string& JsonExporter::StreamFields(uint32_t stream) {
  std::string& fields = stream_fields_[stream];
  if (!fields.empty()) return fields;
  const TimelineStream& about = header_->streams[stream];
  const StreamIdentity& identity = about.description.identity;
  AppendText("instance_id", identity.worker.instance_id, fields);
  if (identity.kind != StreamKind::kFramework) {
    AppendText("process_id", fmt::format("{}", identity.worker.pid), fields);
  }
  if (identity.has_core()) {
    AppendNumber("lnc_idx", identity.nc_idx, fields);
    AppendNumber("nc_idx", identity.nc_idx, fields);
  }
  if (about.rank.worker_gid) AppendNumber("worker_gid", *about.rank.worker_gid, fields);
  return fields;
}

void JsonExporter::AppendEvent(const TimelineRecord& record, std::string& out) {
  const bool is_framework =
      header_->streams[record.stream].description.identity.kind == StreamKind::kFramework;
  std::string_view name = record.start().event_type;
  if (is_framework) {
    const ShapeKey* key = nullptr;
    const uint64_t* value = FindAttribute(record, KeyScope::kTop, "name", &key);
    if (value != nullptr && key->type == ValueType::kString) name = record.text(*value);
  }
  out += "{\"name\":";
  AppendAsJsonString(name, out);
  AppendNumber("timestamp", record.start_ns, out);
  AppendNumber("duration", record.end_ns - record.start_ns, out);
  out += ",\"timestamp_unit\":\"ns\"";
  out += StreamFields(record.stream);
  if (is_framework) {
    AppendFrameworkFields(record, out);
  } else {
    AppendNeuronFields(record, out);
  }
  if (record.kind != RecordKind::kSpan) AppendText("phase", "instant", out);
  AppendAttributes(record, out);
  if (record.has_stop()) {
    AppendStopAttributes(record.stop(), record.stop_values(), record, &record.start(), out);
  }
  if ((record.flags & kHasNrtaSeqId) != 0) AppendNumber("nrta_seq_id", record.nrta_seq_id(), out);
  if ((record.flags & kOpen) != 0) out += ",\"open\":true";
  if ((record.flags & kStartLost) != 0) out += ",\"start_lost\":true";
  if (bounds_) AppendClock(record, out);
}

void JsonExporter::AppendClock(const TimelineRecord& record, std::string& out) {
  if ((record.flags & kVendorClock) != 0) AppendText("clock", "vendor", out);
  if (const auto bound_ns = bounds_->Of(record)) AppendNumber("eps_ns", *bound_ns, out);
  if (header_->clock_arguments) AppendNumber("ts_raw_ns", record.raw_start_ns(), out);
}

void JsonExporter::AppendFrameworkFields(const TimelineRecord& record, std::string& out) {
  AppendText("process_id", FrameworkProcessId(record), out);
  if ((record.start().present & FieldBit(Field::kThreadId)) != 0) {
    AppendNumber("thread_id", record.thread_id, out);
  } else {
    AppendText("thread_id", FrameworkThreadId(record), out);
  }
  AppendText("trace_event_source", ToString(RowSource::kFramework), out);
  AppendText("category", record.start().event_type, out);
}

void JsonExporter::AppendNeuronFields(const TimelineRecord& record, std::string& out) {
  AppendNumber("thread_id", record.thread_id, out);
  if ((record.start().present & FieldBit(Field::kId)) != 0) AppendNumber("id", record.id, out);
  AppendText("trace_event_source", ToString(RowSourceOf(record.start().event_type)), out);
}

void JsonExporter::AppendAttributes(const TimelineRecord& record, std::string& out) {
  const Shape& shape = record.start();
  const auto values = record.start_values();
  const bool is_framework =
      header_->streams[record.stream].description.identity.kind == StreamKind::kFramework;
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool is_top = key.scope == KeyScope::kTop;
    if (is_framework && is_top && Contains(kFrameworkStructure, key.name)) continue;
    if (key.name == "model_name" && key.scope == KeyScope::kData) continue;
    if (key.name == "nc_timestamp_ns" && record.kind == RecordKind::kSpan) {
      AppendKey("nc_start_timestamp_ns", out);
    } else if (Contains(kOwnKeys, key.name)) {
      AppendKey("data." + std::string(key.name), out);
    } else {
      AppendKey(key.name, out);
    }
    AppendValue(key, values[i], record, out);
  }
  AppendModel(record, out);
}

void JsonExporter::AppendStopAttributes(const Shape& shape, std::span<const uint64_t> values,
                                        const TimelineRecord& record, const Shape* start,
                                        std::string& out) {
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    if (key.name == "nc_timestamp_ns") {
      AppendKey("nc_stop_timestamp_ns", out);
    } else if (Contains(kOwnKeys, key.name) || IsTaken(key.name, start, out)) {
      AppendKey("stop_" + std::string(key.name), out);
    } else {
      AppendKey(key.name, out);
    }
    AppendValue(key, values[i], record, out);
  }
}

void JsonExporter::AppendModel(const TimelineRecord& record, std::string& out) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, "model_name", &key);
  const uint64_t* exec_id = FindAttribute(record, KeyScope::kData, "exec_id");
  const std::string_view type = record.start().event_type;
  std::string_view model;
  if (value != nullptr && key->type == ValueType::kString) {
    model = record.text(*value);
    if (type == "kbl_exec_pre" && exec_id != nullptr) models_.Note(record.stream, *exec_id, model);
  } else if (value != nullptr) {
    AppendKey("model_name", out);
    AppendValue(*key, *value, record, out);
    return;
  }
  if (model.empty() && type == "nc_exec_running" && exec_id != nullptr) {
    model = models_.Find(record.stream, *exec_id);
  }
  if (!model.empty() || value != nullptr) AppendText("model_name", model, out);
}

void JsonExporter::AppendWarnings(const std::vector<std::string>& warnings) {
  out_ += "],\n\"mem_usage\":[],\n\"cpu_util\":[],\n\"warnings\":[";
  bool is_first = true;
  const auto add = [&](std::string_view message, std::string_view category) {
    out_ += is_first ? "\n{\"message\":" : ",\n{\"message\":";
    is_first = false;
    AppendAsJsonString(message, out_);
    AppendText("category", category, out_);
    out_ += '}';
  };
  if (header_->certificate != nullptr) {
    const EventAccount& account = header_->certificate->account;
    if (!account.whole()) add(DroppedText(account), "Missing Data");
    add(header_->certificate->verdict, "Capture");
    for (const std::string& finding : header_->certificate->findings) add(finding, "Missing Data");
  }
  for (const std::string& warning : warnings) add(warning, "Capture");
  size_t losses = 0;
  for (const TimelineStream& stream : header_->streams) {
    for (const Loss& gap : stream.description.gaps) {
      if (!IsGivenWay(gap) || gap.last_timestamp_ns <= gap.first_timestamp_ns) continue;
      if (++losses > kLossesMax) continue;
      add(fmt::format(
              "{} did not record from {} to {}: {}", ToString(stream.description.identity.worker),
              TimeText(gap.first_timestamp_ns), TimeText(gap.last_timestamp_ns), gap.detail),
          "Capture");
    }
    for (const Loss& loss : stream.description.losses) {
      if (IsLeftOut(loss)) continue;  // its own events tell it
      if (IsGivenWay(loss)) continue;
      if (++losses > kLossesMax) continue;
      add(fmt::format("{} trace events of {} were lost ({}, {}){}{}",
                      loss.events_unknown ? fmt::format("{} or more", loss.events)
                                          : fmt::format("{}", loss.events),
                      ToString(stream.description.identity), ToString(loss.place),
                      ToString(loss.reason), loss.detail.empty() ? "" : ": ", loss.detail),
          "Missing Data");
    }
  }
  if (losses > kLossesMax) {
    add(fmt::format("{} further losses", losses - kLossesMax), "Missing Data");
  }
  out_ += "],\n\"device_profile_list\":[],\n";
}

void JsonExporter::AppendMetadata() {
  const uint64_t first_ns = first_ns_ == UINT64_MAX ? 0 : first_ns_;
  out_ += "\"system_profile_metadata\":[{\"producer\":";
  AppendAsJsonString(fmt::format("neurontrace {}", NEURONTRACE_VERSION), out_);
  AppendText("capture_id", header_->capture->id.ToString(), out_);
  AppendText("capture_name", header_->capture->name, out_);
  AppendText("first_ts", TimeText(first_ns), out_);
  AppendText("last_ts", TimeText(last_ns_), out_);
  AppendText("first_ts_ns", fmt::format("{}", first_ns), out_);
  AppendText("last_ts_ns", fmt::format("{}", last_ns_), out_);
  AppendKey("clocks", out_);
  out_ += clocks_json_;
  if (!header_->certificate_json.empty()) {
    AppendKey("certificate", out_);
    out_ += header_->certificate_json;
  }
  out_ += "}]}\n";
}

absl::Status JsonExporter::Finish(ExportSummary& summary) {
  for (const auto& [span_id, object] : waiting_) {
    EmitObject(object);
    RETURN_IF_ERROR(FlushIfLarge());
  }
  waiting_.clear();
  AppendWarnings(summary.warnings);
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
