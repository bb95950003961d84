// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/summary/summary_exporter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/derive/arrivals.h"
#include "aggregator/derive/busy_share_sums.h"
#include "aggregator/derive/duration_sketch.h"
#include "aggregator/derive/duration_stats.h"
#include "aggregator/derive/summary.h"
#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/json/json_text.h"
#include "aggregator/export/summary/text_table.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/verdict_text.h"
#include "lib/base/clean_text.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Rows of a table in the text, which is for reading: summary-json has all of them.
constexpr size_t kTypesShown = 40;
constexpr size_t kCoresShown = 64;
constexpr size_t kRowsShown = 20;  // of all else

// Names come from captures: escape sequences must not reach a terminal.
std::string Clean(std::string_view text) { return CleanText(text, limits::kDetailBytesMax); }

// "gid7 i-0abc pid 4711 nc 3"
// Returns what identifies a core or another stream to a reader, safe for a terminal.
std::string CoreName(const CaptureSummary& summary, uint32_t stream) {
  // DurationStats::kOtherStream.
  if (stream >= summary.streams.size()) return "(other)";
  const SummaryStream& about = summary.streams[stream];
  std::string name = ToString(about.identity);
  if (about.worker_gid) name = fmt::format("gid{} {}", *about.worker_gid, name);
  return Clean(name);
}

// Appends a line about the rows that a table does not show, if there are any.
void AppendRest(size_t all, size_t shown, std::string_view what, std::string& out) {
  if (all > shown) {
    out += fmt::format("  and {} more {}; summary-json lists all\n", CountText(all - shown), what);
  }
}

template <typename T>
std::span<const T> First(const std::vector<T>& rows, size_t shown) {
  return std::span<const T>(rows).first(std::min(rows.size(), shown));
}

// Appends which ranks are slow or hung, what was ruled out, and what was not judged. It comes
// first: it is what a reader of figures wants to know.
void AppendAnswer(const CaptureAnswer& answer, std::string& out) {
  const auto add = [&out](std::string_view indent, std::string_view text) {
    // These lines name models and instances, and have more figures than a detail.
    constexpr size_t kLineBytesMax = 4'096;
    AppendWrapped(fmt::format("{}{}", indent, CleanText(text, kLineBytesMax)), out);
  };
  out += "Answer\n";
  for (const InsightLine& line : First(answer.verdicts, kRowsShown)) {
    add("", line.text);
    if (!line.ruled_out.empty()) add("  ", line.ruled_out);
  }
  AppendRest(answer.verdicts.size(), kRowsShown, "verdicts", out);
  for (const InsightLine& line : First(answer.refusals, kRowsShown)) add("", line.text);
  AppendRest(answer.refusals.size(), kRowsShown, "refusals", out);
  add("", answer.text);
  out += '\n';
}

// Appends what the capture covers: name, time, sizes, and what is known of its clocks.
void AppendHead(const CaptureSummary& summary, const TimelineHeader& header, std::string& out) {
  const std::string name = summary.name.empty() ? "" : Clean(summary.name) + " ";
  out += fmt::format("capture {}{}\n", name, summary.id.ToString());
  out += fmt::format("  {} from {}\n", DurationText(summary.window_ns()),
                     VendorTimeText(summary.begin_ns));
  out += fmt::format("  {} instances, {} workers, {} cores\n", CountText(summary.instances),
                     CountText(summary.workers), CountText(summary.cores));
  out += fmt::format(
      "  {} spans, {} instants; {} still open at the end, {} without a recorded start\n",
      CountText(summary.counts.spans), CountText(summary.counts.instants),
      CountText(summary.counts.open_spans), CountText(summary.counts.start_lost_spans));
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  AppendWrapped(Clean(clocks.Describe()), out);
}

// Appends rows of event types, those with the most time first; for each core, or summed over cores.
void AppendDurations(const CaptureSummary& summary, std::span<const DurationRow> all,
                     bool is_of_cores, size_t shown, std::string& out) {
  std::vector<const DurationRow*> rows;
  for (const DurationRow& row : all) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) {
    return a->spans.sum_ns() > b->spans.sum_ns();
  });
  std::vector<std::string> cells = {"type", "count", "total", "median", "p99", "longest"};
  if (is_of_cores) cells.insert(cells.begin(), "core");
  TextTable table(std::move(cells));
  for (size_t i = 0; i < std::min(rows.size(), shown); ++i) {
    const DurationSketch& spans = rows[i]->spans;
    // A type without spans has instants only, which have no durations.
    const auto time = [&](uint64_t ns) { return spans.count() > 0 ? DurationText(ns) : "-"; };
    cells = {Clean(rows[i]->event_type),  CountText(rows[i]->count()),  time(spans.sum_ns()),
             time(spans.QuantileNs(0.5)), time(spans.QuantileNs(0.99)), time(spans.max_ns())};
    if (is_of_cores) cells.insert(cells.begin(), CoreName(summary, rows[i]->stream));
    table.Add(std::move(cells));
  }
  table.AppendTo(out);
  AppendRest(rows.size(), shown, is_of_cores ? "rows" : "types", out);
}

void AppendTypes(const CaptureSummary& summary, std::string& out) {
  if (summary.event_types.empty()) return;
  out += "\nEvents by type, longest total time first\n";
  AppendDurations(summary, summary.event_types, false, kTypesShown, out);
}

// For a single core this table would repeat the one before.
void AppendTypesOfCores(const CaptureSummary& summary, std::string& out) {
  if (summary.durations.size() == summary.event_types.size()) return;
  out += "\nEvents by core and type, longest total time first\n";
  AppendDurations(summary, summary.durations, true, kRowsShown, out);
}

// Returns the durations of the executions that make a core's share, or nullptr if there are none.
const ExecutionRow* ExecutionsOf(const CaptureSummary& summary, const BusyShare& busy) {
  for (const ExecutionRow& row : summary.executions) {
    if (row.stream == busy.stream && row.source == busy.source) return &row;
  }
  return nullptr;
}

// Appends how much each core worked. Cores that wait for another one are as busy as that one, or
// busier, so that the order is that of own work.
void AppendCores(const CaptureSummary& summary, std::string& out) {
  if (summary.busy.empty()) return;
  std::vector<const BusyShare*> rows;
  for (const BusyShare& row : summary.busy) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->own_ns > b->own_ns; });
  out += "\nCores, most own work first\n";
  out +=
      "  own work: time in executions without collectives and barriers; busy: with the waiting\n";
  TextTable table({"core", "own work", "busy", "executions", "median", "p99", "longest"});
  bool has_runtime = false;
  for (size_t i = 0; i < std::min(rows.size(), kCoresShown); ++i) {
    const bool is_runtime = rows[i]->source == ExecutionSource::kRuntime;
    has_runtime = has_runtime || is_runtime;
    const ExecutionRow* executions = ExecutionsOf(summary, *rows[i]);
    const DurationSketch none;
    const DurationSketch& durations = executions == nullptr ? none : executions->durations;
    const std::optional<double> own = rows[i]->OwnOf(summary.window_ns());
    table.Add({CoreName(summary, rows[i]->stream), own ? ShareText(*own) : "-",
               ShareText(rows[i]->Of(summary.window_ns())) + (is_runtime ? "*" : ""),
               CountText(rows[i]->executions), DurationText(durations.QuantileNs(0.5)),
               DurationText(durations.QuantileNs(0.99)), DurationText(durations.max_ns())});
  }
  table.AppendTo(out);
  AppendRest(rows.size(), kCoresShown, "cores", out);
  if (has_runtime) out += "  * from the runtime's calls, because the device's events are missing\n";
}

// The builder has sorted them; times are relative to the begin of the capture or of the window.
void AppendSlowest(const CaptureSummary& summary, std::string& out) {
  if (summary.slowest.empty()) return;
  out += "\nSlowest executions\n";
  TextTable table({"core", "took", "began after", "exec_id", "model"});
  for (const Execution& execution : First(summary.slowest, kRowsShown)) {
    constexpr size_t kModelBytesMax = 24;
    table.Add(
        {CoreName(summary, execution.stream), DurationText(execution.end_ns - execution.start_ns),
         DurationText(execution.start_ns - std::min(execution.start_ns, summary.begin_ns)),
         execution.exec_id ? fmt::format("{}", *execution.exec_id) : "-",
         execution.model_name.empty() ? "-" : CleanText(execution.model_name, kModelBytesMax)});
  }
  table.AppendTo(out);
}

// One row for each communicator. "beyond bound" counts collectives whose skew exceeds the clocks'
// bound.
void AppendCollectives(const CaptureSummary& summary, std::string& out) {
  if (summary.communicators.empty()) return;
  out += "\nCollectives: time from the first arrival to the last\n";
  TextTable table(
      {"communicator", "count", "median", "p99", "longest", "beyond bound", "incomplete"});
  for (const CommunicatorRow& row : First(summary.communicators, kRowsShown)) {
    const Communicator& about = row.communicator;
    std::string name = about.root_comm_id.empty() ? "job" : Clean(about.root_comm_id);
    if (about.group) name += fmt::format(" group {}", *about.group);
    if (about.cc_stream) name += fmt::format(" stream {}", *about.cc_stream);
    name += fmt::format(", {} cores", about.streams.size());
    table.Add({name, CountText(row.collectives), DurationText(row.arrival_skew.QuantileNs(0.5)),
               DurationText(row.arrival_skew.QuantileNs(0.99)),
               DurationText(row.arrival_skew.max_ns()), CountText(row.skew_known),
               CountText(row.incomplete)});
  }
  table.AppendTo(out);
  AppendRest(summary.communicators.size(), kRowsShown, "communicators", out);
}

// Only cores that certainly arrived last at least once; the builder has sorted them. Being last
// does not make a core the cause, so that the heading refers to the answer.
void AppendArrivals(const CaptureSummary& summary, std::string& out) {
  TextTable table({"core", "last", "of", "known", "late, median", "longest", "bound"});
  for (const ArrivalRow& row : summary.arrivals) {
    if (row.last_known == 0 || table.rows() == kRowsShown) continue;
    table.Add(
        {CoreName(summary, row.stream), CountText(row.last), CountText(row.collectives),
         CountText(row.last_known), DurationText(row.lateness.QuantileNs(0.5)),
         DurationText(row.lateness.max_ns()),
         // The order of cores that one clock stamps is not in doubt.
         row.lateness_bound_max_ns == 0 ? "one clock" : DurationText(row.lateness_bound_max_ns)});
  }
  if (table.rows() == 0) return;
  out += "\nArrivals: cores that arrived last in collectives by more than the clocks' bound\n";
  out += "  Who causes it: see the answer at the top. A core can be late because of another one.\n";
  table.AppendTo(out);
}

// Appends device memory and transfers, each if the capture has any.
void AppendMemory(const CaptureSummary& summary, std::string& out) {
  if (!summary.memory.empty()) {
    out += "\nDevice memory, from the recorded allocations\n";
    TextTable table({"memory", "peak", "at the end"});
    for (const MemoryRow& row : First(summary.memory, kRowsShown)) {
      table.Add({Clean(fmt::format("{} device {} hbm {}", row.memory.instance_id, row.memory.device,
                                   row.memory.hbm)),
                 BytesText(static_cast<double>(row.peak_total_bytes)),
                 BytesText(static_cast<double>(row.last_total_bytes))});
    }
    table.AppendTo(out);
    AppendRest(summary.memory.size(), kRowsShown, "memories", out);
  }
  if (summary.bandwidth.empty()) return;
  // Sorted for the text only; the JSON keeps the order by stream.
  std::vector<BandwidthRow> rows = summary.bandwidth;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  out += "\nTransfers, most bytes first\n";
  TextTable table({"core", "direction", "moved", "peak"});
  for (const BandwidthRow& row : First(rows, kRowsShown)) {
    const bool is_in = row.direction == TransferDirection::kHostToDevice;
    table.Add({CoreName(summary, row.stream), is_in ? "host to device" : "device to host",
               BytesText(row.bytes), BytesText(row.peak_bytes_per_second) + "/s"});
  }
  table.AppendTo(out);
  AppendRest(rows.size(), kRowsShown, "rows", out);
}

// Appends the warnings of the figures, then those of the capture and of the reading.
void AppendMissing(const CaptureSummary& summary, const TimelineHeader& header,
                   const std::vector<std::string>& warnings, std::string& out) {
  std::vector<std::string> lines;
  const auto add = [&lines](std::string_view text) { lines.push_back(Clean(text)); };
  for (const std::string& warning : summary.warnings) add(warning);
  ForEachWarning(header, warnings, [&](std::string_view message, std::string_view) {
    // The verdict has a section of its own at the end.
    const bool is_verdict = header.certificate != nullptr && message == header.certificate->verdict;
    if (!is_verdict) add(message);  // it ends the text
  });
  if (lines.empty()) return;
  out += "\nMissing or uncertain\n";
  for (const std::string& line : First(lines, kRowsShown)) AppendWrapped(line, out);
  AppendRest(lines.size(), kRowsShown, "remarks", out);
}

// Returns a capture's figures as an engineer reads them in a terminal: at most 100 columns, what
// matters most first, the certificate's verdict last. docs/formats/summary.md explains every
// column. `warnings` are those of the reading.
std::string SummaryText(const CaptureSummary& summary, const CaptureAnswer& answer,
                        const TimelineHeader& header, const std::vector<std::string>& warnings) {
  std::string out;
  AppendAnswer(answer, out);
  AppendHead(summary, header, out);
  AppendTypes(summary, out);
  AppendCores(summary, out);
  AppendTypesOfCores(summary, out);
  AppendSlowest(summary, out);
  AppendCollectives(summary, out);
  AppendArrivals(summary, out);
  AppendMemory(summary, out);
  AppendMissing(summary, header, warnings, out);
  if (header.certificate != nullptr) {
    out += "\nVerdict\n";
    AppendWrapped(Clean(header.certificate->verdict), out);
  }
  return out;
}

std::string_view SourceName(ExecutionSource source) {
  return source == ExecutionSource::kDevice ? "device" : "runtime";
}

// A JSON object of the form for programs, which everything from here on writes. Each member is
// preceded by a comma; Close removes the first.
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
  // A moment is written as text, because a double cannot hold all of its digits.
  Object& Time(std::string_view key, uint64_t ns) { return Text(key, fmt::format("{}", ns)); }
  // Six significant digits: these are measurements. JSON has no infinity.
  Object& Real(std::string_view key, double value) {
    return Json(key, std::isfinite(value) ? fmt::format("{:.6g}", value) : "null");
  }
  Object& Json(std::string_view key, std::string_view json) {
    AppendJsonKey(key, text_);
    text_ += json;
    return *this;
  }
  // Appends the figures of a distribution as an object; quantiles are those of DurationSketch.
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

// Returns an array with one object for each row, each on a line of its own. `append` fills in the
// object.
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

// The functions below fill in the object of one row. docs/formats/summary.md defines the keys;
// streams are referred to by their index in "streams".
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
  out.Count("start_lost", row.start_lost).Count("odd_length", row.anomalous);
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

// Members that are not known are omitted, here and in the functions above.
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

void AppendArrival(const ArrivalRow& row, Object& out) {
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
             if (row.own_ns) object.Count("own_ns", *row.own_ns);
             if (const auto own = row.OwnOf(summary.window_ns())) object.Real("own_share", *own);
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
  out.Json("arrivals", Array(summary.arrivals, AppendArrival));
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

// Returns the indexes of a verdict's or refusal's cores in "streams".
std::string StreamsJson(const InsightLine& line) {
  return fmt::format("[{}]", fmt::join(line.streams, ","));
}

// Unlike Array on one line, because it is a part of a row.
std::string RuledOutJson(const Verdict& verdict) {
  std::string out = "[";
  for (const RuledOut& cause : verdict.ruled_out) {
    if (out.size() > 1) out += ',';
    Object object;
    object.Text("what", cause.what);
    if (cause.ratio > 0) object.Real("ratio", cause.ratio);
    if (!cause.figure.empty()) object.Text("figure", cause.figure);
    out += object.Close();
  }
  return out + "]";
}

void AppendVerdict(const Verdict& verdict, const InsightLine& line, Object& out) {
  out.Text("kind", VerdictKindName(verdict.kind)).Text("phase", InsightPhaseName(verdict.phase));
  out.Json("streams", StreamsJson(line));
  if (!verdict.role.empty()) out.Text("role", verdict.role);
  out.Count("peers", verdict.peers);
  // A hang has neither.
  if (verdict.ratio > 0) out.Real("ratio", verdict.ratio);
  if (verdict.z > 0) out.Real("z", verdict.z);
  out.Count("executions", verdict.executions).Count("judged", verdict.judged);
  out.Time("since_ns", verdict.since_ns).Time("until_ns", verdict.until_ns);
  out.Count("cost_ns", verdict.cost_ns).Count("step_ns", verdict.step_ns);
  out.Count("total_cost_ns", verdict.total_cost_ns);
  out.Count("waiting", verdict.waiting);
  if (verdict.exec_id != 0) out.Time("exec_id", verdict.exec_id);
  if (verdict.op_id != 0) out.Time("op_id", verdict.op_id);
  out.Json("ruled_out", RuledOutJson(verdict)).Text("text", line.text);
}

void AppendRefusal(const Refusal& refusal, const InsightLine& line, Object& out) {
  out.Text("reason", RefusalReasonName(refusal.reason)).Json("streams", StreamsJson(line));
  // Absent for the whole time.
  if (refusal.begin_ns != 0 || refusal.end_ns != 0) {
    out.Time("begin_ns", refusal.begin_ns).Time("end_ns", refusal.end_ns);
  }
  out.Count("count", refusal.count).Text("missing", refusal.missing).Text("text", line.text);
}

// Adds "judged", "verdicts" and "refusals".
void AppendAnswerJson(const CaptureAnswer& answer, Object& out) {
  const InsightReport& report = answer.report;
  Object judged;
  judged.Json("is_judged", answer.is_judged ? "true" : "false").Text("text", answer.text);
  judged.Text("rule_version", kInsightRuleVersion).Count("cores", report.cores);
  judged.Count("cores_judged", report.cores_judged).Count("executions", report.executions);
  judged.Count("step_ns", report.step_ns).Count("exposed_wait_ns", report.exposed_wait_ns);
  judged.Count("explained_wait_ns", report.explained_wait_ns);
  judged.Json("below_cost", report.is_below_cost ? "true" : "false");
  out.Json("judged", judged.Close());
  const auto rows = [](const auto& items, const std::vector<InsightLine>& lines, auto append) {
    size_t row = 0;
    return Array(items,
                 [&](const auto& item, Object& object) { append(item, lines[row++], object); });
  };
  out.Json("verdicts", rows(report.verdicts, answer.verdicts, AppendVerdict));
  out.Json("refusals", rows(report.refusals, answer.refusals, AppendRefusal));
}

// Returns a capture's figures as one JSON object for programs; docs/formats/summary.md defines its
// keys.
std::string SummaryJson(const CaptureSummary& summary, const CaptureAnswer& answer) {
  Object out;
  out.Time("begin_ns", summary.begin_ns).Time("end_ns", summary.end_ns);
  out.Count("instances", summary.instances).Count("workers", summary.workers);
  out.Count("cores", summary.cores).Json("counts", CountsJson(summary));
  AppendAnswerJson(answer, out);
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

}  // namespace

absl::Status SummaryExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  builder_.emplace(*header.capture, header.streams, *header.filter);
  for (const EarlierPreparation& earlier : header.earlier) {
    builder_->RecordPreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                                earlier.model_name);
  }
  insight_.emplace(header);
  return absl::OkStatus();
}

absl::Status SummaryExporter::Write(const TimelineBatch& batch) {
  builder_->Take(batch);
  insight_->Take(batch);
  return absl::OkStatus();
}

// One line for each member, so that people can read the file as well.
std::string SummaryExporter::JsonFile(const CaptureSummary& figures,
                                      const CaptureAnswer& answer) const {
  std::string capture = capture_json_;
  if (capture.empty()) {
    capture = fmt::format("{{\"capture_id\":\"{}\"", header_->capture->id.ToString());
    AppendJsonText("name", header_->capture->name, capture);
    capture += '}';
  }
  std::string text =
      fmt::format("{{\"format_version\":1,\n\"producer\":\"neurontrace {}\"", NEURONTRACE_VERSION);
  text += ",\n\"capture\":" + capture;
  if (!header_->certificate_json.empty()) {
    text += ",\n\"certificate\":";
    text += header_->certificate_json;
  }
  return text + ",\n\"summary\":" + SummaryJson(figures, answer) + "}\n";
}

// The counts of the reading are final only now.
absl::Status SummaryExporter::Finish(ExportSummary& summary) {
  CaptureSummary figures = builder_->Finish();
  figures.counts = summary.counts;
  const CaptureAnswer answer = insight_->Finish();
  if (form_ == Form::kJson) {
    // The text shows them together with those of the certificate, which is a separate member here.
    figures.warnings.insert(figures.warnings.end(), summary.warnings.begin(),
                            summary.warnings.end());
  }
  const std::string text = form_ == Form::kJson
                               ? JsonFile(figures, answer)
                               : SummaryText(figures, answer, *header_, summary.warnings);
  bytes_written_ = text.size();
  return sink_.Write(text);
}

}  // namespace neurontrace
