// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/slice_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "aggregator/export/clock_report.h"
#include "aggregator/export/pftrace/chunk_strings.h"
#include "aggregator/export/row_source.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

constexpr std::string_view kNanoseconds = "ns";

// An argument has one type everywhere, because trace processors make a column of it: an id that is
// not a number gets another name.
struct IdNames {
  std::string_view number;
  std::string_view text;
};
// The whole text must be a number.
std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}
// Writes an id under the name for numbers if it is one, and else under that for texts.
void WriteId(const IdNames& names, const std::string& id, Interner& interner,
             TrackEventFields& out) {
  if (const std::optional<uint64_t> number = ParseNumber(id)) {
    out.Uint(interner.AnnotationName(names.number), *number);
  } else {
    out.InternedString(interner.AnnotationName(names.text), interner.StringValue(id));
  }
}

}  // namespace

// Bounds are described if times are aligned, or if the request asks for them.
void SliceArguments::Begin(const TimelineHeader& header) {
  header_ = &header;
  for (const EarlierPreparation& earlier : header.earlier) {
    models_.Record(earlier.stream, earlier.exec_id, earlier.model_name);
  }
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  if (clocks.is_aligned() || (header.clock_arguments && !header.raw_clocks)) {
    bounds_.emplace(header.streams);
  }
}

const SliceArguments::Names& SliceArguments::names() {
  if (names_.generation == interner_.generation()) return names_;
  const auto intern = [this](std::string_view name) { return interner_.AnnotationName(name); };
  // A new generation has forgotten all texts, so they are interned again.
  names_.device_profile = intern("device_profile");
  names_.duration = intern("duration");
  names_.id = intern("id");
  names_.instance_id = intern("instance_id");
  names_.lnc_idx = intern("lnc_idx");
  names_.model_name = intern("model_name");
  names_.name = intern("name");
  names_.nc_idx = intern("nc_idx");
  names_.process_id = intern("process_id");
  names_.thread_id = intern("thread_id");
  names_.timestamp = intern("timestamp");
  names_.timestamp_unit = intern("timestamp_unit");
  names_.trace_event_source = intern("trace_event_source");
  names_.worker_gid = intern("worker_gid");
  names_.open = intern("open");
  names_.start_lost = intern("start_lost");
  names_.squeezed = intern("squeezed");
  names_.nrta_seq_id = intern("nrta_seq_id");
  names_.clock = intern("clock");
  names_.eps_ns = intern("eps_ns");
  names_.eps_unknown = intern("eps_unknown");
  names_.ts_raw_ns = intern("ts_raw_ns");
  names_.open_category = interner_.Category("open");
  names_.start_lost_category = interner_.Category("start_lost");
  names_.null_value = interner_.StringValue("null");
  names_.vendor_value = interner_.StringValue("vendor");
  names_.generation = interner_.generation();
  return names_;
}

// Serialises what all events of a row have in common, once for each generation.
void SliceArguments::RefreshRow(const TimelineRecord& record, TraceRow& row) {
  const Names& names = this->names();
  const TimelineStream& stream = header_->streams[record.stream];
  const StreamIdentity& identity = stream.description.identity;
  TrackEventFields out;
  out.Start(perfetto::EventType::kBegin, 0);
  // Start writes a type and a track, which are not part of the arguments.
  const size_t begin = out.bytes().size();
  out.InternedString(names.instance_id, interner_.StringValue(identity.worker.instance_id));
  if (identity.kind == StreamKind::kFramework) {
    WriteId({"process_id", "process_text"}, FrameworkProcessId(record), interner_, out);
    WriteId({"thread_id", "thread_text"}, FrameworkThreadId(record), interner_, out);
  } else {
    out.Uint(names.process_id, identity.worker.pid);
    out.Uint(names.thread_id, record.thread_id);
  }
  if (identity.has_core()) {
    out.Uint(names.lnc_idx, identity.nc_idx);
    out.Uint(names.nc_idx, identity.nc_idx);
  }
  if (stream.rank.worker_gid) out.Int(names.worker_gid, *stream.rank.worker_gid);
  out.InternedString(names.trace_event_source, interner_.StringValue(ToString(row.source)));
  out.InternedString(names.timestamp_unit, interner_.StringValue(kNanoseconds));
  row.arguments = std::string(out.bytes().substr(begin));
  row.arguments_generation = interner_.generation();
  row.arguments_stream = record.stream;
  row.arguments_thread_id = record.thread_id;
}

// An empty name counts as none.
std::string_view SliceArguments::ModelOf(const TimelineRecord& record,
                                         const ShapePlan& plan) const {
  if (plan.model_name_key != ShapePlan::kNone) {
    const std::string_view name = record.text(record.values[plan.model_name_key]);
    if (!name.empty()) return name;
  }
  if (plan.exec_id_key == ShapePlan::kNone) return {};
  return models_.Find(record.stream, record.values[plan.exec_id_key]);
}

// Models are few and recur: the latest are remembered by number.
uint32_t SliceArguments::ProfileIid(uint64_t model_id) {
  Profile& known = profiles_[model_id % profiles_.size()];
  if (known.generation != interner_.generation() || known.model_id != model_id) {
    title_ = fmt::format("device_profile_model_{}.pftrace", model_id);
    known = {model_id, interner_.generation(), interner_.StringValue(title_)};
  }
  return known.iid;
}

// Writes nothing for events that neither have the attribute nor are executions of a device.
void SliceArguments::WriteModel(const TimelineRecord& record, EventPlans& plans,
                                const ShapePlan& plan, TrackEventFields& out) {
  if (plan.model_name_key != ShapePlan::kNone) {
    const uint64_t string = record.values[plan.model_name_key];
    if (!record.text(string).empty()) {
      WriteText(names().model_name, string, record, plans, out);
      return;
    }
  } else if (!plan.is_device_execution) {
    return;
  }
  const std::string_view model = ModelOf(record, plan);
  if (model.empty()) return;
  // Names of models recur in each execution.
  if (model.size() <= ChunkStrings::kInternedBytesMax) {
    out.InternedString(names().model_name, interner_.StringValue(model));
  } else {
    out.String(names().model_name, model);
  }
}

// The title is the framework's own name, or the event type, with the model for executions of a
// device.
void SliceArguments::WriteName(const TimelineRecord& record, EventPlans& plans,
                               const ShapePlan& plan, TrackEventFields& out) {
  if (plan.name_key != ShapePlan::kNone) {
    out.Name(
        plans.StringsOf(record).NameIid(*record.names, record.values[plan.name_key], interner_));
    if (plan.category_iid != 0) out.Category(plan.category_iid);
    return;
  }
  if (plan.is_device_execution) {
    const std::string_view model = ModelOf(record, plan);
    if (!model.empty()) {
      // The model is part of the title, so that executions of different models look different.
      title_ = record.start().event_type;
      title_ += ' ';
      title_ += model;
      out.Name(interner_.EventName(title_));
      return;
    }
  }
  out.Name(plan.name_iid);
}

// Long texts are written in place, because they would fill the interner.
void SliceArguments::WriteText(uint32_t name_iid, uint64_t string, const TimelineRecord& record,
                               EventPlans& plans, TrackEventFields& out) {
  const std::string_view text = record.text(string);
  if (text.size() <= ChunkStrings::kInternedBytesMax) {
    out.InternedString(name_iid,
                       plans.StringsOf(record).StringIid(*record.names, string, interner_));
  } else {
    out.String(name_iid, text);
  }
}

// Requires that the numbers of the plans are those of the interner's generation.
void SliceArguments::WriteValues(const std::vector<ArgumentPlan>& arguments, const uint64_t* values,
                                 const TimelineRecord& record, EventPlans& plans,
                                 TrackEventFields& out) {
  for (const ArgumentPlan& argument : arguments) {
    const uint64_t value = values[argument.key];
    switch (argument.type) {
      case ValueType::kUint:
        out.Uint(argument.name_iid, value);
        break;
      case ValueType::kInt:
        out.Int(argument.name_iid, static_cast<int64_t>(value));
        break;
      case ValueType::kBool:
        out.Bool(argument.name_iid, value != 0);
        break;
      case ValueType::kDouble:
        out.Double(argument.name_iid, value);
        break;
      case ValueType::kString:
        if (argument.text_name_iid != 0) {
          if (const std::optional<uint64_t> number = ParseNumber(record.text(value))) {
            out.Uint(argument.name_iid, *number);
          } else {
            WriteText(argument.text_name_iid, value, record, plans, out);
          }
          break;
        }
        [[fallthrough]];
      case ValueType::kJson:
        WriteText(argument.name_iid, value, record, plans, out);
        break;
      case ValueType::kNull:
        out.InternedString(argument.name_iid, names().null_value);
        break;
    }
  }
}

void SliceArguments::Write(const TimelineRecord& record, TraceRow& row, EventPlans& plans,
                           bool is_squeezed, TrackEventFields& out) {
  ShapePlan& plan = plans.Interned(*record.shape, interner_);
  const Names& names = this->names();
  if (plan.names_model && plan.exec_id_key != ShapePlan::kNone &&
      plan.model_name_key != ShapePlan::kNone) {
    models_.Record(record.stream, record.values[plan.exec_id_key],
                   record.text(record.values[plan.model_name_key]));
  }
  WriteName(record, plans, plan, out);
  // As categories, so that queries and colours distinguish them, rather than only the details of a
  // selected slice.
  if ((record.flags & kOpen) != 0) out.Category(names.open_category);
  if ((record.flags & kStartLost) != 0) out.Category(names.start_lost_category);
  if (detail_ == ArgumentDetail::kVendor) {
    if (row.arguments_generation != interner_.generation() ||
        row.arguments_stream != record.stream || row.arguments_thread_id != record.thread_id) {
      RefreshRow(record, row);
    }
    out.Append(row.arguments);
    out.Uint(names.timestamp, record.start_ns);
    if (record.kind == RecordKind::kSpan) out.Uint(names.duration, record.end_ns - record.start_ns);
    if (plan.has_id) out.Uint(names.id, record.id);
    if (plan.name_key == ShapePlan::kNone) out.InternedString(names.name, plan.name_value_iid);
    if (plan.model_id_key != ShapePlan::kNone) {
      out.InternedString(names.device_profile, ProfileIid(record.values[plan.model_id_key]));
    }
  } else if (is_squeezed) {
    out.Uint(names.duration, record.end_ns - record.start_ns);
  }
  // The event's own attributes follow what this program adds to every slice.
  WriteModel(record, plans, plan, out);
  WriteValues(plan.arguments, record.values, record, plans, out);
  if (record.has_stop()) {
    WriteValues(plans.StopArguments(plan, *record.shape, *record.stop_shape, interner_),
                record.stop_values().data(), record, plans, out);
  }
  if ((record.flags & kHasNrtaSeqId) != 0) out.Uint(names.nrta_seq_id, record.nrta_seq_id());
  if ((record.flags & kOpen) != 0) out.Bool(names.open, true);
  if ((record.flags & kStartLost) != 0) out.Bool(names.start_lost, true);
  if (is_squeezed) out.Bool(names.squeezed, true);
  if (header_->streams[record.stream].description.has_own_time()) {
    out.Uint(interner_.AnnotationName(kOwnTimeKey), record.raw_start_ns());
  } else if (bounds_) {
    WriteClock(record, out);
  }
}

// Requires bounds_, and that names() was called for this event.
void SliceArguments::WriteClock(const TimelineRecord& record, TrackEventFields& out) {
  const bool is_vendor = (record.flags & kVendorClock) != 0;
  if (is_vendor) out.InternedString(names_.clock, names_.vendor_value);
  // A small bound in each event would only make traces larger.
  const std::optional<uint64_t> bound_ns = bounds_->Of(record);
  if (!header_->clock_arguments && (is_vendor || (bound_ns && *bound_ns <= kShownBoundNs))) {
    return;
  }
  out.Uint(names_.ts_raw_ns, record.raw_start_ns());
  if (bound_ns) {
    out.Uint(names_.eps_ns, *bound_ns);
  } else {
    out.Bool(names_.eps_unknown, true);
  }
}

// The attributes keep their names, because the instant has no attributes of a start beside them.
void SliceArguments::WriteStop(const TimelineRecord& stop, EventPlans& plans,
                               TrackEventFields& out) {
  ShapePlan& plan = plans.Interned(*stop.shape, interner_);
  for (const ArgumentPlan& argument : plan.arguments) {
    const std::string_view key = stop.start().keys[argument.key].name;
    ArgumentPlan renamed = argument;
    if (key == "nc_timestamp_ns") {
      renamed.name_iid = interner_.AnnotationName("nc_stop_timestamp_ns");
    }
    WriteValues({renamed}, stop.values, stop, plans, out);
  }
}

void SliceArguments::WriteStopBeside(const SharedShape* start, const TimelineRecord& stop,
                                     EventPlans& plans, TrackEventFields& out) {
  if (start != nullptr) {
    ShapePlan& plan = plans.Interned(*start, interner_);
    return WriteValues(plans.StopArguments(plan, *start, *stop.shape, interner_), stop.values, stop,
                       plans, out);
  }
  const auto& keys = stop.start().keys;
  for (uint32_t i = 0; i < keys.size(); ++i) {
    const std::string name = "stop_" + std::string(keys[i].name);
    WriteValues({{i, keys[i].type, interner_.AnnotationName(name)}}, stop.values, stop, plans, out);
  }
}

// Called rarely, so that texts are interned without a plan.
void SliceArguments::WriteLoss(const LossInstant& instant, TrackEventFields& out) {
  const Loss& loss = instant.loss;
  const auto text = [this, &out](std::string_view name, std::string_view value) {
    out.InternedString(interner_.AnnotationName(name), interner_.StringValue(value));
  };
  out.Name(interner_.EventName(instant.name()));
  text("place", ToString(loss.place));
  text("reason", ToString(loss.reason));
  out.Uint(interner_.AnnotationName("events"), loss.events);
  if (loss.last_timestamp_ns > loss.first_timestamp_ns && loss.first_timestamp_ns != 0) {
    out.Uint(interner_.AnnotationName("gap_ns"), loss.last_timestamp_ns - loss.first_timestamp_ns);
  }
  if (loss.events_unknown) out.Bool(interner_.AnnotationName("events_unknown"), true);
  if (!loss.detail.empty()) text("detail", loss.detail);
}

}  // namespace neurontrace
