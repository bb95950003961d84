// SPDX-License-Identifier: Apache-2.0
#include "cli/flight_recorder_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/capture_progress.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/text.h"
#include "trace/limits.h"

namespace neurontrace::cli {
namespace {

// Of the table: those where something is wrong come first, each in the order of jobs and ranks.
constexpr size_t kLinesShown = 64;

std::string StateOf(const v1::CaptureWorkerStatus& worker) {
  if (worker.state() == v1::CAPTURE_WORKER_STATE_RECORDING) return "on";
  return OutcomeName(worker.state());
}

std::string Types(const v1::CaptureSpec& spec) {
  if (spec.event_types().empty()) return "all";
  std::string text;
  for (const std::string& type : spec.event_types()) text += (text.empty() ? "" : ",") + type;
  return text;
}

}  // namespace

std::string FormatFlightRecorder(const v1::Capture& capture, const WorkerRanks& ranks) {
  const v1::CaptureSpec& spec = capture.spec();
  const uint64_t ring = spec.ring_events_per_core() == 0 ? limits::kRingEventsPerCoreDefault
                                                         : spec.ring_events_per_core();
  std::string out = fmt::format(
      "flight recorder  {}{}{}\nworkers          {}\nsince            {}\nrings            {} "
      "events a core\nevent types      {}\n",
      capture.capture_id(), spec.name().empty() ? "" : "  ", spec.name(),
      IsOfEveryJob(spec) ? "all" : FormatSelection(spec), FormatTime(BeginOf(capture)),
      FormatCount(ring), Types(spec));
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  if (capture.workers().empty()) return out;
  std::vector<const v1::CaptureWorkerStatus*> workers;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) workers.push_back(&worker);
  const auto order = [&ranks](const v1::CaptureWorkerStatus& worker) {
    return std::pair(!IsLeftOut(worker), ranks.PlaceOf(worker));
  };
  std::stable_sort(workers.begin(), workers.end(),
                   [&order](const auto* a, const auto* b) { return order(*a) < order(*b); });
  std::vector<std::vector<std::string>> rows;
  for (const v1::CaptureWorkerStatus* worker : workers) {
    if (rows.size() == kLinesShown) break;
    rows.push_back({worker->worker().instance_id(), std::to_string(worker->worker().pid()),
                    ranks.Format(worker->worker()), StateOf(*worker),
                    FormatTime(worker->begun_realtime_ns()), ReasonOf(*worker)});
  }
  out += "\n" + FormatTable({"INSTANCE", "PID", "WORKER GIDS", "STATE", "SINCE", "REASON"}, rows);
  if (workers.size() > rows.size()) {
    out += fmt::format("({}; --output json has all)\n",
                       FormatCounted(workers.size() - rows.size(), "further worker"));
  }
  return out + FormatOutcomeSummary(capture);
}

}  // namespace neurontrace::cli
