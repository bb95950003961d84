// SPDX-License-Identifier: Apache-2.0
#include "cli/outcome_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "cli/capture_view.h"
#include "cli/clocks_view.h"
#include "cli/text.h"
#include "lib/trace/framework_trace.h"
#include "lib/trace/worker_info.h"

namespace neurontrace::cli {
namespace {

// Returns whether the worker has recorded, even if its data was lost later.
bool HasPart(const v1::CaptureWorkerStatus& worker) {
  switch (worker.state()) {
    case v1::CAPTURE_WORKER_STATE_RECORDING:
    case v1::CAPTURE_WORKER_STATE_STOPPING:
    case v1::CAPTURE_WORKER_STATE_COMPLETE:
    case v1::CAPTURE_WORKER_STATE_LOST:
      return true;
    default:
      return false;
  }
}

// Returns how a worker began: the offset from the planned moment, or a time if there was no plan.
std::string FormatBegun(const v1::CaptureWorkerStatus& worker) {
  if (!HasPart(worker) && worker.begun_realtime_ns() == 0) return "-";
  if (worker.joined_late()) {
    return worker.begun_realtime_ns() == 0
               ? "late"
               : fmt::format("late, {}", FormatTime(worker.begun_realtime_ns()));
  }
  if (worker.begun_as_planned()) return FormatOffset(worker.begin_offset_ns());
  return worker.begun_realtime_ns() == 0 ? "not known" : FormatTime(worker.begun_realtime_ns());
}

// The sort key of workers: those that were left out, those that fell short, those that lost events,
// the others; each group in the order of jobs and ranks.
using Order = std::pair<int, WorkerRanks::Place>;
Order OrderOf(const v1::CaptureWorkerStatus& worker, const v1::Capture& capture,
              const WorkerRanks& ranks) {
  const int badness = IsLeftOut(worker)             ? 0
                      : FallsShort(worker, capture) ? 1
                      : worker.events_lost() > 0    ? 2
                                                    : 3;
  return {badness, ranks.PlaceOf(worker)};
}

// Returns pointers into `capture`, in the order above.
std::vector<const v1::CaptureWorkerStatus*> WorstFirst(const v1::Capture& capture,
                                                       const WorkerRanks& ranks) {
  std::vector<std::pair<Order, const v1::CaptureWorkerStatus*>> keyed;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    keyed.emplace_back(OrderOf(worker, capture, ranks), &worker);
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const v1::CaptureWorkerStatus*> workers;
  for (const auto& [order, worker] : keyed) workers.push_back(worker);
  return workers;
}

// Returns the verb of a mode for this number of workers, such as "keeps its rings" or "were
// collected".
std::string ModeName(const v1::Capture& capture, size_t workers) {
  const bool is_running = capture.state() == v1::CAPTURE_STATE_RECORDING;
  const bool is_one = workers == 1;
  switch (capture.spec().mode()) {
    case v1::CAPTURE_MODE_FLIGHT_RECORDER:
      return fmt::format("{} {} rings",
                         !is_running ? "kept"
                         : is_one    ? "keeps"
                                     : "keep",
                         is_one ? "its" : "their");
    case v1::CAPTURE_MODE_SNAPSHOT:
      if (is_running) return is_one ? "is being collected" : "are being collected";
      return is_one ? "was collected" : "were collected";
    default:
      return !is_running ? "recorded" : is_one ? "records" : "record";
  }
}

// Returns how exactly the workers met the planned moment, such as "began 0.1 ms before to 0.7 ms
// after". Workers that joined late are not counted. Returns "" without a plan.
std::string FormatSkew(const v1::Capture& capture) {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = std::numeric_limits<int64_t>::min();
  size_t planned = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (!worker.begun_as_planned() || worker.joined_late() || !HasPart(worker)) continue;
    first = std::min<int64_t>(first, worker.begin_offset_ns());
    last = std::max<int64_t>(last, worker.begin_offset_ns());
    ++planned;
  }
  if (planned == 0) return "";
  const bool is_cut = capture.spec().mode() == v1::CAPTURE_MODE_SNAPSHOT;
  std::string text = is_cut ? "cut " : "began ";
  if (first == last) {
    text += FormatOffset(first) + " from the planned moment";
  } else {
    text += fmt::format("{} to {} from the planned moment, {} apart", FormatOffset(first),
                        FormatOffset(last), FormatDuration(static_cast<uint64_t>(last - first)));
  }
  if (capture.begin().bound_ns() != 0) {
    text += "; their clocks are within " + FormatDuration(capture.begin().bound_ns());
  } else if (!is_cut) {
    text += "; not all their clocks were known when it was planned";
  }
  return text + "\n";
}

// Returns whether the capture begins or ends at executions instead of times.
bool IsByExecution(const v1::CaptureSpec& spec) {
  return spec.at_next_execution() || spec.at_execution() != 0 || spec.executions() != 0;
}

// Returns whether the capture has a final result.
bool HasBegunAndEnded(const v1::Capture& capture) {
  return HasEnded(capture) && capture.state() != v1::CAPTURE_STATE_NOT_BEGUN;
}

// Returns whether each core of the worker that ran executions recorded the capture's first one.
bool BeganOnTime(const v1::CaptureWorkerStatus& worker, const v1::CaptureBegin& begin) {
  return worker.first_execution() == begin.first_execution() &&
         worker.highest_first_execution() == begin.first_execution() &&
         worker.cores_without_execution() == 0;
}

// Returns how many workers began at the common execution; "" for captures by time. If no worker saw
// an execution, the line explains it.
std::string FormatExecutions(const v1::Capture& capture) {
  const v1::CaptureBegin& begin = capture.begin();
  if (begin.first_execution() == 0) {
    return IsByExecution(capture.spec()) && HasBegunAndEnded(capture)
               ? "no execution to start at was seen: events carry no execution number, or nothing "
                 "ran; nothing was recorded\n"
               : "";
  }
  uint64_t on_time = 0;
  uint64_t of = 0;
  uint64_t newest = 0;
  bool is_any = false;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (!HasPart(worker) || worker.framework()) continue;
    ++of;
    on_time += BeganOnTime(worker, begin) ? 1 : 0;
    newest = std::max<uint64_t>(newest, worker.newest_execution());
    is_any = is_any || worker.first_execution() != 0;
  }
  std::string text = fmt::format("{} of {} began at execution {} on every core", on_time, of,
                                 FormatCount(begin.first_execution()));
  if (begin.last_execution() != 0) {
    text += fmt::format(", to stop after {}", FormatCount(begin.last_execution()));
  }
  if (of > 0 && !is_any && HasBegunAndEnded(capture)) {
    text += newest == 0 ? "; no execution was seen"
                        : fmt::format("; the newest seen is {}", FormatCount(newest));
  }
  return text + "\n";
}

// Returns how far a snapshot reaches back on the worst worker, such as "reaches back at least 8.2 s
// of the 20.0 s requested". "" for other captures.
std::string FormatReach(const v1::Capture& capture) {
  const v1::CaptureSpec& spec = capture.spec();
  if (spec.mode() != v1::CAPTURE_MODE_SNAPSHOT) return "";
  uint64_t least = std::numeric_limits<uint64_t>::max();
  int short_of = 0;
  int of = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (!HasPart(worker) || worker.framework()) continue;
    ++of;
    least = std::min<uint64_t>(least, worker.reaches_back_ns());
    short_of += FallsShort(worker, capture) ? 1 : 0;
  }
  if (of == 0) return "";
  if (spec.last_ns() == 0) {
    return fmt::format("reaches back {} or more on every worker\n", FormatDuration(least));
  }
  if (short_of == 0) return fmt::format("reaches back {}\n", FormatDuration(spec.last_ns()));
  return fmt::format(
      "reaches back at least {} of the {} requested: the rings of {} of {} held no more; use a "
      "larger --ring-events, unless a warning reports that a snapshot emptied the rings\n",
      FormatDuration(least), FormatDuration(spec.last_ns()), short_of,
      FormatCounted(static_cast<uint64_t>(of), "worker"));
}

// Returns "4711", or "4711-4712" if it differs between the cores; "4711-?" if it may.
std::string FormatSpread(uint64_t lowest, uint64_t highest) {
  if (lowest == highest) return std::to_string(lowest);
  return fmt::format("{}-{}", lowest == 0 ? "?" : std::to_string(lowest),
                     highest == 0 ? "?" : std::to_string(highest));
}

// Returns the executions that a worker recorded, such as "4711 to 4720", or "4711-4712 to
// 4719-4720, none on 1 core" if its cores differ. The runtime may have advanced beyond the last one
// that was asked for.
std::string FormatExecutions(const v1::CaptureWorkerStatus& worker, const v1::CaptureBegin& begin) {
  if (worker.first_execution() == 0) return "-";
  const uint64_t last =
      begin.last_execution() == 0 ? std::numeric_limits<uint64_t>::max() : begin.last_execution();
  const auto in_range = [last](uint64_t newest) { return std::min(newest, last); };
  std::string text = fmt::format(
      "{} to {}", FormatSpread(worker.first_execution(), worker.highest_first_execution()),
      // While a capture without an end records, cores differ by what is in progress.
      begin.last_execution() == 0 ? std::to_string(worker.newest_execution())
                                  : FormatSpread(in_range(worker.lowest_newest_execution()),
                                                 in_range(worker.newest_execution())));
  if (const uint32_t without = worker.cores_without_execution(); without > 0) {
    text += ", none on " + FormatCounted(without, "core");
  }
  return text;
}

}  // namespace

std::string FormatParticipants(size_t workers, size_t framework_sources) {
  const std::string text = FormatCounted(workers, "worker");
  if (framework_sources == 0) return text;
  return text + ", " + FormatCounted(framework_sources, "framework source");
}

std::string ObstacleName(v1::CaptureObstacle obstacle) {
  if (!v1::CaptureObstacle_IsValid(obstacle)) return "unknown obstacle";
  return std::string(ToString(static_cast<CaptureObstacle>(obstacle)));
}

std::string OutcomeName(v1::CaptureWorkerState state) {
  switch (state) {
    case v1::CAPTURE_WORKER_STATE_STARTING:
      return "starting";
    case v1::CAPTURE_WORKER_STATE_RECORDING:
      return "recording";
    case v1::CAPTURE_WORKER_STATE_STOPPING:
      return "storing";
    case v1::CAPTURE_WORKER_STATE_COMPLETE:
      return "recorded";
    case v1::CAPTURE_WORKER_STATE_REFUSED:
      return "refused";
    case v1::CAPTURE_WORKER_STATE_LOST:
      return "lost";
    case v1::CAPTURE_WORKER_STATE_ARMED:
      return "armed";
    case v1::CAPTURE_WORKER_STATE_SUSPENDED:
      return "suspended";
    default:
      return "unknown";
  }
}

std::string ReasonOf(const v1::CaptureWorkerStatus& worker) {
  // The agent's detail often contains the obstacle's text, which is not repeated.
  const std::string obstacle = ObstacleName(worker.obstacle());
  if (obstacle.empty() || worker.detail().empty()) {
    return obstacle.empty() ? worker.detail() : obstacle;
  }
  if (worker.detail().find(obstacle) != std::string::npos) return worker.detail();
  return fmt::format("{} ({})", obstacle, worker.detail());
}

bool IsLeftOut(const v1::CaptureWorkerStatus& worker) {
  switch (worker.state()) {
    case v1::CAPTURE_WORKER_STATE_REFUSED:
    case v1::CAPTURE_WORKER_STATE_LOST:
    case v1::CAPTURE_WORKER_STATE_SUSPENDED:
      return true;
    default:
      return worker.obstacle() != v1::CAPTURE_OBSTACLE_NONE;
  }
}

bool FallsShort(const v1::CaptureWorkerStatus& worker, const v1::Capture& capture) {
  const v1::CaptureSpec& spec = capture.spec();
  if (worker.framework() || !HasPart(worker)) return false;
  if (spec.mode() == v1::CAPTURE_MODE_SNAPSHOT) return worker.reaches_back_ns() < spec.last_ns();
  if (!IsByExecution(spec) || !HasBegunAndEnded(capture)) return false;
  // A worker that joined late is reported as late already; only the total absence of an execution
  // is reported in addition.
  return worker.first_execution() == 0 || worker.cores_without_execution() > 0 ||
         (!worker.joined_late() && !BeganOnTime(worker, capture.begin()));
}

std::string FormatOutcome(const v1::Capture& capture, const WorkerRanks& ranks, size_t rows_max,
                          size_t columns) {
  if (capture.workers().empty()) return "";
  const bool is_snapshot = capture.spec().mode() == v1::CAPTURE_MODE_SNAPSHOT;
  const bool by_execution = capture.begin().first_execution() != 0;
  const bool with_jobs = ranks.AreOfSeveralJobs(capture);
  std::vector<std::string> header = {
      "INSTANCE", "PID", "WORKER GIDS", "OUTCOME", is_snapshot ? "CUT" : "BEGAN", "EVENTS", "LOST"};
  // Columns that apply only to some captures; each row below inserts the same ones.
  if (with_jobs) header.insert(header.begin() + 2, "JOB");
  if (is_snapshot) header.push_back("REACHES BACK");
  if (by_execution) header.push_back("EXECUTIONS");
  header.push_back("REASON");
  std::vector<std::vector<std::string>> rows;
  const std::vector<const v1::CaptureWorkerStatus*> workers = WorstFirst(capture, ranks);
  for (const v1::CaptureWorkerStatus* worker : workers) {
    if (rows.size() == rows_max) break;
    const bool has_part = HasPart(*worker);
    std::vector<std::string> row = {
        worker->worker().instance_id(),
        worker->framework()           ? "framework"
        : worker->worker().pid() == 0 ? "-"
                                      : std::to_string(worker->worker().pid()),
        ranks.Format(worker->worker()),
        OutcomeName(worker->state()),
        FormatBegun(*worker),
        has_part ? FormatCount(worker->events_read()) : "-",
        has_part ? FormatLost(worker->events_lost(), worker->events_lost_unknown()) : "-"};
    if (with_jobs) {
      const std::string job = ranks.JobOf(worker->worker());
      row.insert(row.begin() + 2, job.empty() ? "-" : job);
    }
    if (is_snapshot) row.push_back(FormatDuration(worker->reaches_back_ns()));
    if (by_execution) row.push_back(FormatExecutions(*worker, capture.begin()));
    row.push_back(ReasonOf(*worker));
    rows.push_back(std::move(row));
  }
  std::string out = FormatTable(header, rows, columns);
  if (workers.size() > rows.size()) {
    out += fmt::format(
        "({} not worse than the last one shown; captures show --wide has all)\n",
        FormatCounted(workers.size() - rows.size(), "further worker is", "further workers are"));
  }
  return out;
}

std::string FormatOutcomeSummary(const v1::Capture& capture) {
  size_t selected = 0;
  size_t taking_part = 0;
  size_t late = 0;
  std::map<std::string, size_t> others;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (worker.framework()) continue;
    ++selected;
    if (HasPart(worker) && !IsLeftOut(worker)) {
      ++taking_part;
      late += worker.joined_late() ? 1 : 0;
      continue;
    }
    const std::string obstacle = ObstacleName(worker.obstacle());
    ++others[obstacle.empty() ? OutcomeName(worker.state()) : obstacle];
  }
  // Framework sources alone have no summary.
  if (selected == 0) return "";
  std::string text;
  for (const auto& [name, count] : others) {
    text += fmt::format("{}{}: {}", text.empty() ? " (" : ", ", name, count);
  }
  if (!text.empty()) text += ")";
  if (late > 0) text += fmt::format(", {} of them joined late", late);
  return fmt::format("{} of {} {}{}\n{}{}{}", taking_part, FormatCounted(selected, "worker"),
                     ModeName(capture, taking_part), text, FormatSkew(capture),
                     FormatExecutions(capture), FormatReach(capture));
}

std::string FormatFrameworkTraces(const v1::Capture& capture, size_t rows_max, size_t columns) {
  std::vector<std::vector<std::string>> rows;
  size_t seen = 0;
  size_t asked = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    for (const v1::FrameworkTrace& trace : worker.framework_traces()) {
      ++asked;
      if (trace.state() == v1::FRAMEWORK_TRACE_STATE_FILE_SEEN) {
        ++seen;
      } else if (rows.size() < rows_max) {
        rows.push_back({trace.worker().instance_id(), std::to_string(trace.worker().pid()),
                        trace.framework(),
                        std::string(ToString(static_cast<FrameworkTraceState>(trace.state()))),
                        trace.detail()});
      }
    }
  }
  if (asked == 0) return "";
  std::string out;
  if (!rows.empty()) {
    out = FormatTable({"INSTANCE", "PID", "FRAMEWORK", "TRACE", "REASON"}, rows, columns);
  }
  if (const size_t missing = asked - seen; missing > rows.size()) {
    out += fmt::format("(and {}; captures show --wide has all)\n",
                       FormatCounted(missing - rows.size(), "further trace"));
  }
  return out + fmt::format("{} of {} seen\n", seen, FormatCounted(asked, "framework trace"));
}

}  // namespace neurontrace::cli
