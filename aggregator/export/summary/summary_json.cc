// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/summary/summary_json.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "aggregator/export/json/json_text.h"

namespace neurontrace {
namespace {

std::string_view SourceName(ExecutionSource source) {
  return source == ExecutionSource::kDevice ? "device" : "runtime";
}

// An object under way; each member is preceded by a comma that Close takes off the first.
class Object {
 public:
  template <std::integral Number>
  Object& Count(std::string_view key, Number value) {
    AppendJsonNumber(key, value, text_);
    return *this;
  }
  Object& Text(std::string_view key, std::string_view value) {
    AppendJsonText(key, value, text_);
    return *this;
  }
  // A moment: more digits than a double has.
  Object& Time(std::string_view key, uint64_t ns) { return Text(key, fmt::format("{}", ns)); }
  Object& Real(std::string_view key, double value) {
    return Json(key, fmt::format("{:.6g}", value));
  }
  Object& Json(std::string_view key, std::string_view json) {
    AppendJsonKey(key, text_);
    text_ += json;
    return *this;
  }
  Object& Durations(std::string_view key, const DurationSketch& sketch) {
    Object figures;
    figures.Count("count", sketch.count()).Count("sum_ns", sketch.sum_ns());
    figures.Count("min_ns", sketch.min_ns()).Count("mean_ns", sketch.mean_ns());
    figures.Count("p50_ns", sketch.QuantileNs(0.5)).Count("p90_ns", sketch.QuantileNs(0.9));
    figures.Count("p99_ns", sketch.QuantileNs(0.99)).Count("max_ns", sketch.max_ns());
    return Json(key, figures.Close());
  }
  std::string Close() const { return text_.empty() ? "{}" : "{" + text_.substr(1) + "}"; }

 private:
  std::string text_;
};

template <typename T, typename Append>
std::string Array(const std::vector<T>& rows, const Append& append) {
  std::string out = "[";
  for (const T& row : rows) {
    out += out.size() == 1 ? "\n" : ",\n";
    Object object;
    append(row, object);
    out += object.Close();
  }
  return out + "]";
}

void AppendStream(const SummaryStream& stream, Object& out) {
  out.Text("instance_id", stream.identity.worker.instance_id);
  out.Count("process_id", stream.identity.worker.pid);
  if (stream.identity.has_core()) out.Count("nc_idx", stream.identity.nc_idx);
  if (!stream.identity.name.empty()) out.Text("name", stream.identity.name);
  if (stream.worker_gid) out.Count("worker_gid", *stream.worker_gid);
  out.Count("events", stream.events).Count("lost", stream.lost);
  out.Json("lost_unknown", stream.lost_unknown ? "true" : "false");
  if (stream.clock_bound_ns) out.Count("clock_bound_ns", *stream.clock_bound_ns);
}

void AppendDurations(const DurationRow& row, bool with_stream, Object& out) {
  out.Text("event_type", row.event_type);
  if (with_stream && row.stream != DurationStats::kOtherStream) out.Count("stream", row.stream);
  out.Count("count", row.count()).Count("instants", row.instants).Count("open", row.open);
  out.Count("start_lost", row.start_lost).Count("odd_length", row.odd);
  out.Durations("spans", row.spans);
}

void AppendExecution(const Execution& execution, Object& out) {
  out.Count("stream", execution.stream).Text("source", SourceName(execution.source));
  if (execution.exec_id) out.Time("exec_id", *execution.exec_id);
  out.Time("start_ns", execution.start_ns);
  out.Count("duration_ns", execution.end_ns - execution.start_ns);
  out.Count("busy_ns", execution.busy_ns);
  if (execution.model_id) out.Time("model_id", *execution.model_id);
  if (!execution.model_name.empty()) out.Text("model_name", execution.model_name);
}

std::string CommunicatorJson(const Communicator& communicator) {
  Object out;
  if (!communicator.root_comm_id.empty()) out.Text("root_comm_id", communicator.root_comm_id);
  if (communicator.world_size != 0) out.Count("world_size", communicator.world_size);
  if (communicator.group) out.Time("group", *communicator.group);
  if (communicator.cc_stream) out.Time("cc_stream", *communicator.cc_stream);
  return out.Count("cores", communicator.streams.size()).Close();
}

void AppendCommunicator(const CommunicatorRow& row, Object& out) {
  out.Json("communicator", CommunicatorJson(row.communicator));
  out.Count("collectives", row.collectives).Count("single", row.single);
  out.Count("disjoint", row.disjoint).Count("incomplete", row.incomplete);
  out.Durations("arrival_skew", row.arrival_skew).Durations("durations", row.durations);
  out.Count("skew_known", row.skew_known).Count("skew_bound_max_ns", row.skew_bound_max_ns);
  out.Count("skew_unbounded", row.skew_unbounded);
}

void AppendCollective(const Collective& collective, Object& out) {
  out.Count("communicator", collective.communicator).Time("exec_id", collective.exec_id);
  out.Time("op_id", collective.op_id).Time("start_ns", collective.start_ns());
  out.Count("arrival_skew_ns", collective.arrival_skew_ns());
  if (const auto bound_ns = collective.skew_bound_ns()) out.Count("skew_bound_ns", *bound_ns);
  out.Count("members", collective.members.size()).Count("last_stream", collective.last().stream);
  out.Count("absent", collective.absent_count);
}

void AppendStraggler(const StragglerRow& row, Object& out) {
  out.Count("stream", row.stream).Count("collectives", row.collectives);
  out.Count("last", row.last).Count("last_known", row.last_known);
  out.Durations("lateness", row.lateness).Count("lateness_bound_max_ns", row.lateness_bound_max_ns);
  out.Count("lateness_unbounded", row.lateness_unbounded).Durations("waits", row.waits);
  out.Count("absent", row.absent);
}

void AppendMemoryUse(const MemoryRow& row, Object& out) {
  out.Text("instance_id", row.memory.instance_id).Count("device_idx", row.memory.device);
  out.Count("hbm_idx", row.memory.hbm).Count("samples", row.samples);
  out.Count("last_total_bytes", row.last_total_bytes);
  out.Count("peak_total_bytes", row.peak_total_bytes).Time("peak_ns", row.peak_ns);
  Object peaks;
  for (size_t i = 0; i < kHbmCategories; ++i) {
    if (row.peak_category_bytes[i] == 0) continue;
    peaks.Count(std::string(ToString(static_cast<HbmCategory>(i))) + "_bytes",
                row.peak_category_bytes[i]);
  }
  out.Json("peak_by_category", peaks.Close());
}

std::string CountsJson(const CaptureSummary& summary) {
  Object out;
  out.Count("spans", summary.counts.spans).Count("instants", summary.counts.instants);
  out.Count("open_spans", summary.counts.open_spans);
  out.Count("start_lost_spans", summary.counts.start_lost_spans);
  out.Count("unreadable_chunks", summary.counts.unreadable_chunks);
  out.Count("device_executions", summary.execution_counts.device);
  out.Count("runtime_executions", summary.execution_counts.runtime);
  out.Count("collectives", summary.collective_counts.collectives);
  return out.Count("framework_steps", summary.step_counts.framework).Close();
}

void AppendTables(const CaptureSummary& summary, Object& out) {
  out.Json("slowest_executions", Array(summary.slowest, AppendExecution));
  out.Json("busy", Array(summary.busy, [&](const BusyShare& row, Object& object) {
             object.Count("stream", row.stream).Text("source", SourceName(row.source));
             object.Count("executions", row.executions).Count("busy_ns", row.busy_ns);
             object.Real("share", row.Of(summary.window_ns())).Count("open", row.open);
           }));
  out.Json(
      "steps", Array(summary.steps, [](const StepRow& row, Object& object) {
        const bool is_framework = row.source == StepSource::kFramework;
        object.Count("stream", row.stream).Text("source", is_framework ? "framework" : "execution");
        object.Durations("durations", row.durations).Durations("intervals", row.intervals);
        object.Time("first_number", row.first_number).Time("last_number", row.last_number);
      }));
  out.Json("communicators", Array(summary.communicators, AppendCommunicator));
  out.Json("worst_collectives", Array(summary.worst_collectives, AppendCollective));
  out.Json("stragglers", Array(summary.stragglers, AppendStraggler));
  out.Json("memory", Array(summary.memory, AppendMemoryUse));
  out.Json(
      "bandwidth", Array(summary.bandwidth, [](const BandwidthRow& row, Object& object) {
        const bool is_in = row.direction == TransferDirection::kHostToDevice;
        object.Count("stream", row.stream);
        object.Text("direction", is_in ? "host_to_device" : "device_to_host");
        object.Real("bytes", row.bytes).Real("peak_bytes_per_second", row.peak_bytes_per_second);
        object.Time("peak_ns", row.peak_ns);
      }));
}

}  // namespace

std::string SummaryJson(const CaptureSummary& summary) {
  Object out;
  out.Time("begin_ns", summary.begin_ns).Time("end_ns", summary.end_ns);
  out.Count("instances", summary.instances).Count("workers", summary.workers);
  out.Count("cores", summary.cores).Json("counts", CountsJson(summary));
  out.Json("streams", Array(summary.streams, AppendStream));
  out.Json("event_types", Array(summary.event_types, [](const DurationRow& row, Object& object) {
             AppendDurations(row, false, object);
           }));
  out.Json("durations", Array(summary.durations, [](const DurationRow& row, Object& object) {
             AppendDurations(row, true, object);
           }));
  out.Json("executions", Array(summary.executions, [](const ExecutionRow& row, Object& object) {
             object.Count("stream", row.stream).Text("source", SourceName(row.source));
             object.Durations("durations", row.durations).Durations("latencies", row.latencies);
             object.Count("open", row.open);
           }));
  AppendTables(summary, out);
  out.Json("losses", Array(summary.losses, [](const Loss& loss, Object& object) {
             object.Text("place", ToString(loss.place)).Text("reason", ToString(loss.reason));
             object.Count("events", loss.events);
             object.Json("events_unknown", loss.events_unknown ? "true" : "false");
             object.Text("detail", loss.detail);
           }));
  std::string warnings = "[";
  for (const std::string& warning : summary.warnings) {
    if (warnings.size() > 1) warnings += ',';
    AppendAsJsonString(warning, warnings);
  }
  return out.Json("warnings", warnings + "]").Close();
}

}  // namespace neurontrace
