// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/summary/summary_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/summary/text_table.h"
#include "base/clean_text.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kTypesShown = 40;
constexpr size_t kCoresShown = 64;
constexpr size_t kRowsShown = 20;  // of all else

std::string Clean(std::string_view text) { return CleanText(text, limits::kDetailBytesMax); }

// "gid7 i-0abc pid 4711 nc 3"
std::string CoreName(const CaptureSummary& summary, uint32_t stream) {
  if (stream >= summary.streams.size()) return "(other)";
  const SummaryStream& about = summary.streams[stream];
  std::string name = ToString(about.identity);
  if (about.worker_gid) name = fmt::format("gid{} {}", *about.worker_gid, name);
  return Clean(name);
}

void AppendRest(size_t all, size_t shown, std::string_view what, std::string& out) {
  if (all > shown) {
    out += fmt::format("  and {} more {}: summary-json has all\n", CountText(all - shown), what);
  }
}

template <typename T>
std::span<const T> First(const std::vector<T>& rows, size_t shown) {
  return std::span<const T>(rows).first(std::min(rows.size(), shown));
}

void AppendHead(const CaptureSummary& summary, const TimelineHeader& header, std::string& out) {
  const std::string name = summary.name.empty() ? "" : Clean(summary.name) + " ";
  out += fmt::format("capture {}{}\n", name, summary.id.ToString());
  out += fmt::format("  {} from {}\n", DurationText(summary.window_ns()),
                     VendorTimeText(summary.begin_ns));
  out += fmt::format("  {} instances, {} workers, {} cores\n", CountText(summary.instances),
                     CountText(summary.workers), CountText(summary.cores));
  out += fmt::format(
      "  {} spans, {} instants; {} still open at the end, {} whose start is not "
      "there\n",
      CountText(summary.counts.spans), CountText(summary.counts.instants),
      CountText(summary.counts.open_spans), CountText(summary.counts.start_lost_spans));
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  AppendWrapped(Clean(clocks.Words()), out);
}

// Rows of event types, the most time first; of each core, or summed over them.
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
  out += "\nEvents by type, the most time first\n";
  AppendDurations(summary, summary.event_types, false, kTypesShown, out);
}

// Of one core alone it would be the same again.
void AppendTypesOfCores(const CaptureSummary& summary, std::string& out) {
  if (summary.durations.size() == summary.event_types.size()) return;
  out += "\nEvents by core and type, the most time first\n";
  AppendDurations(summary, summary.durations, true, kRowsShown, out);
}

const ExecutionRow* ExecutionsOf(const CaptureSummary& summary, const BusyShare& busy) {
  for (const ExecutionRow& row : summary.executions) {
    if (row.stream == busy.stream && row.source == busy.source) return &row;
  }
  return nullptr;
}

void AppendCores(const CaptureSummary& summary, std::string& out) {
  if (summary.busy.empty()) return;
  std::vector<const BusyShare*> rows;
  for (const BusyShare& row : summary.busy) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto* a, const auto* b) { return a->busy_ns < b->busy_ns; });
  out += "\nCores, the least busy first\n";
  TextTable table({"core", "busy", "executions", "median", "p99", "longest"});
  bool has_runtime = false;
  for (size_t i = 0; i < std::min(rows.size(), kCoresShown); ++i) {
    const bool is_runtime = rows[i]->source == ExecutionSource::kRuntime;
    has_runtime = has_runtime || is_runtime;
    const ExecutionRow* executions = ExecutionsOf(summary, *rows[i]);
    const DurationSketch none;
    const DurationSketch& durations = executions == nullptr ? none : executions->durations;
    table.Add({CoreName(summary, rows[i]->stream),
               ShareText(rows[i]->Of(summary.window_ns())) + (is_runtime ? "*" : ""),
               CountText(rows[i]->executions), DurationText(durations.QuantileNs(0.5)),
               DurationText(durations.QuantileNs(0.99)), DurationText(durations.max_ns())});
  }
  table.AppendTo(out);
  AppendRest(rows.size(), kCoresShown, "cores", out);
  if (has_runtime) out += "  * by the runtime's calls: the device's events are not there\n";
}

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

void AppendCollectives(const CaptureSummary& summary, std::string& out) {
  if (summary.communicators.empty()) return;
  out += "\nCollectives: from the first arrival to the last\n";
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

void AppendStragglers(const CaptureSummary& summary, std::string& out) {
  TextTable table({"core", "last", "of", "known", "late, median", "longest", "bound"});
  for (const StragglerRow& row : summary.stragglers) {
    if (row.last_known == 0 || table.rows() == kRowsShown) continue;
    table.Add(
        {CoreName(summary, row.stream), CountText(row.last), CountText(row.collectives),
         CountText(row.last_known), DurationText(row.lateness.QuantileNs(0.5)),
         DurationText(row.lateness.max_ns()),
         // Of cores that one clock stamps nothing is in doubt.
         row.lateness_bound_max_ns == 0 ? "one clock" : DurationText(row.lateness_bound_max_ns)});
  }
  if (table.rows() == 0) return;
  out += "\nStragglers: who arrived last in collectives, by more than the clocks' bound\n";
  table.AppendTo(out);
}

void AppendMemory(const CaptureSummary& summary, std::string& out) {
  if (!summary.memory.empty()) {
    out += "\nDevice memory, from allocations seen\n";
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
  std::vector<BandwidthRow> rows = summary.bandwidth;
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  out += "\nTransfers, the most bytes first\n";
  TextTable table({"core", "direction", "moved", "peak"});
  for (const BandwidthRow& row : First(rows, kRowsShown)) {
    const bool is_in = row.direction == TransferDirection::kHostToDevice;
    table.Add({CoreName(summary, row.stream), is_in ? "host to device" : "device to host",
               BytesText(row.bytes), BytesText(row.peak_bytes_per_second) + "/s"});
  }
  table.AppendTo(out);
  AppendRest(rows.size(), kRowsShown, "rows", out);
}

void AppendWhatIsMissing(const CaptureSummary& summary, const TimelineHeader& header,
                         const std::vector<std::string>& warnings, std::string& out) {
  std::vector<std::string> lines;
  const auto add = [&lines](std::string_view text) { lines.push_back(Clean(text)); };
  for (const std::string& warning : summary.warnings) add(warning);
  ForEachWarning(header, warnings, [&](std::string_view message, std::string_view) {
    const bool is_verdict = header.certificate != nullptr && message == header.certificate->verdict;
    if (!is_verdict) add(message);  // it ends the text
  });
  if (lines.empty()) return;
  out += "\nWhat is missing or in doubt\n";
  for (const std::string& line : First(lines, kRowsShown)) AppendWrapped(line, out);
  AppendRest(lines.size(), kRowsShown, "remarks", out);
}

}  // namespace

std::string SummaryText(const CaptureSummary& summary, const TimelineHeader& header,
                        const std::vector<std::string>& warnings) {
  std::string out;
  AppendHead(summary, header, out);
  AppendTypes(summary, out);
  AppendCores(summary, out);
  AppendTypesOfCores(summary, out);
  AppendSlowest(summary, out);
  AppendCollectives(summary, out);
  AppendStragglers(summary, out);
  AppendMemory(summary, out);
  AppendWhatIsMissing(summary, header, warnings, out);
  if (header.certificate != nullptr) {
    out += "\nVerdict\n";
    AppendWrapped(Clean(header.certificate->verdict), out);
  }
  return out;
}

}  // namespace neurontrace
