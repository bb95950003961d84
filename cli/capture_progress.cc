// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/outcome_view.h"
#include "cli/progress_line.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// The time between two readings of a rate. Shorter ones fluctuate with the batches in which agents
// report.
constexpr uint64_t kRateOverNs = 900'000'000;
constexpr int kBarColumns = 24;
// A planned begin is within this time after the request. A larger difference means that the two
// times are of different clocks, so that the plan says nothing about this one.
constexpr uint64_t kPlanWithinNs = 600'000'000'000;

// Returns the difference, or 0 if the order is reversed: times and counts come from other machines.
uint64_t Since(uint64_t from_ns, uint64_t to_ns) { return to_ns > from_ns ? to_ns - from_ns : 0; }

// Returns a rate for a cell of the table; "-" if it is unknown.
std::string FormatRate(double per_second) {
  if (per_second < 0) return "-";
  return FormatCount(static_cast<uint64_t>(std::llround(per_second)));
}

// The following functions sum what agents have reported of their workers, which precedes what the
// store has confirmed. A worker that vanished reports nothing any more, so the store's count is the
// lower limit.
uint64_t EventsRead(const v1::Capture& capture) {
  uint64_t sum = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) sum += worker.events_read();
  return std::max<uint64_t>(sum, capture.events());
}

uint64_t BytesRead(const v1::Capture& capture) {
  uint64_t sum = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) sum += worker.bytes_read();
  return std::max<uint64_t>(sum, capture.bytes());
}

uint64_t EventsLost(const v1::Capture& capture) {
  uint64_t sum = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) sum += worker.events_lost();
  return std::max<uint64_t>(sum, capture.events_lost());
}

bool EventsLostUnknown(const v1::Capture& capture) {
  return capture.events_lost_unknown() ||
         std::any_of(capture.workers().begin(), capture.workers().end(),
                     [](const auto& worker) { return worker.events_lost_unknown(); });
}

// Returns the greatest number of an execution that a worker has reported; 0: none.
uint64_t NewestExecution(const v1::Capture& capture) {
  uint64_t newest = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    newest = std::max<uint64_t>(newest, worker.newest_execution());
  }
  return newest;
}

// Returns how exact the clock of an instance is, or "-" if it is not aligned yet.
std::string FormatBoundOf(const v1::Capture& capture, const std::string& instance_id) {
  for (const v1::WorkerClockBound& bound : capture.clock_bounds()) {
    if (bound.instance_id() == instance_id) return FormatDuration(bound.bound_ns());
  }
  return "-";
}

}  // namespace

uint64_t EventsWaiting(const v1::Capture& capture) {
  uint64_t sum = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    sum += Since(worker.events_stored(), worker.events_read());
  }
  return sum;
}

uint64_t BeginOf(const v1::Capture& capture) {
  const uint64_t planned_ns = capture.begin().reference_ns();
  const uint64_t asked_ns = capture.started_realtime_ns();
  const bool is_plan = planned_ns >= asked_ns && planned_ns - asked_ns < kPlanWithinNs;
  return is_plan ? planned_ns : asked_ns;
}

bool IsPastBegin(const v1::Capture& capture) {
  return capture.state() == v1::CAPTURE_STATE_RECORDING &&
         capture.server_realtime_ns() >= BeginOf(capture);
}

std::string PhaseOf(const v1::Capture& capture) {
  const bool is_snapshot = capture.spec().mode() == v1::CAPTURE_MODE_SNAPSHOT;
  const bool is_preview = capture.spec().mode() == v1::CAPTURE_MODE_PREVIEW;
  switch (capture.state()) {
    case v1::CAPTURE_STATE_ARMING:
      return "arming";
    case v1::CAPTURE_STATE_RECORDING:
      if (!IsPastBegin(capture)) {
        return fmt::format("{} in {}", is_snapshot ? "cut" : "begins",
                           FormatDuration(BeginOf(capture) - capture.server_realtime_ns()));
      }
      if (is_preview) return "counting";
      if (is_snapshot) return "collecting";
      if (capture.spec().at_next_execution() && capture.begin().first_execution() == 0) {
        return "looking for an execution to begin at";
      }
      if (const uint64_t first = capture.begin().first_execution();
          first > NewestExecution(capture)) {
        return fmt::format("waiting for execution {}", FormatCount(first));
      }
      return "recording";
    case v1::CAPTURE_STATE_STOPPING:
      return is_snapshot ? "collecting" : "storing the rest";
    case v1::CAPTURE_STATE_NOT_BEGUN:
      return "not begun";
    default:
      return "ended";
  }
}

void CaptureProgress::Meter::Take(uint64_t now_ns, uint64_t now) {
  if (at_ns == 0) {
    at_ns = now_ns;
    count = now;
    return;
  }
  // The first reading has no predecessor, and a reading that follows too soon would make the rate
  // jump.
  if (now_ns < at_ns + kRateOverNs) return;
  per_second = static_cast<double>(Since(count, now)) * 1e9 / static_cast<double>(now_ns - at_ns);
  at_ns = now_ns;
  count = now;
}

CaptureProgress::Key CaptureProgress::KeyOf(const v1::CaptureWorkerStatus& worker) {
  return {worker.worker().instance_id(), worker.worker().pid(), worker.worker().start_time_ticks(),
          worker.framework()};
}

void CaptureProgress::Update(const v1::Capture& capture) {
  capture_ = capture;
  const uint64_t now_ns = capture.server_realtime_ns();
  events_.Take(now_ns, EventsRead(capture));
  bytes_.Take(now_ns, BytesRead(capture));
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    events_of_[KeyOf(worker)].Take(now_ns, worker.events_read());
  }
}

double CaptureProgress::RateOf(const v1::CaptureWorkerStatus& worker) const {
  const auto meter = events_of_.find(KeyOf(worker));
  return meter == events_of_.end() ? -1 : meter->second.per_second;
}

// Returns a line such as "recording  10.2 s of 30.0 s, 19.8 s left  [######------]". The bar is
// last because a narrow window cuts the line.
std::string CaptureProgress::FirstLine() const {
  const std::string phase = PhaseOf(capture_);
  if (capture_.state() == v1::CAPTURE_STATE_ARMING) {
    const auto armed =
        std::count_if(capture_.workers().begin(), capture_.workers().end(), [](const auto& worker) {
          return !worker.framework() && worker.state() == v1::CAPTURE_WORKER_STATE_ARMED;
        });
    return fmt::format("{} {}/{}", phase, armed, CountWorkers(capture_.workers()));
  }
  if (!IsPastBegin(capture_)) return phase;
  const uint64_t elapsed = Since(BeginOf(capture_), capture_.server_realtime_ns());
  const uint64_t duration = capture_.spec().duration_ns();
  // A capture without a duration has no fraction that is done.
  if (duration == 0 || capture_.spec().mode() == v1::CAPTURE_MODE_PREVIEW) {
    return fmt::format("{}  {}", phase, FormatDuration(elapsed));
  }
  const double fraction = static_cast<double>(elapsed) / static_cast<double>(duration);
  return fmt::format("{}  {} of {}, {} left  {}", phase,
                     FormatDuration(std::min(elapsed, duration)), FormatDuration(duration),
                     FormatDuration(Since(elapsed, duration)), Bar(fraction, kBarColumns));
}

// Returns a line such as "16 workers, 1 left out  0 lost  1,234,567 events (124,000/s)  12.3 MiB
// (1.2 MiB/s)". Parts that are unknown or do not apply are omitted.
std::string CaptureProgress::SecondLine() const {
  const auto left_out =
      std::count_if(capture_.workers().begin(), capture_.workers().end(), IsLeftOut);
  std::string text = FormatParticipants(capture_.workers());
  if (left_out > 0) text += fmt::format(", {} left out", left_out);
  text += fmt::format("  {} lost  {} events",
                      FormatLost(EventsLost(capture_), EventsLostUnknown(capture_)),
                      FormatCount(EventsRead(capture_)));
  if (events_.per_second >= 0) text += fmt::format(" ({}/s)", FormatRate(events_.per_second));
  text += "  " + FormatBytes(BytesRead(capture_));
  if (bytes_.per_second >= 0) {
    text += fmt::format(" ({}/s)", FormatBytes(static_cast<uint64_t>(bytes_.per_second)));
  }
  if (const uint64_t max = capture_.spec().bytes_max(); max > 0) {
    text += fmt::format("  {:.0f} % of {}",
                        100 * static_cast<double>(capture_.bytes()) / static_cast<double>(max),
                        FormatBytes(max));
  }
  const v1::CaptureBegin& begin = capture_.begin();
  if (begin.last_execution() != 0) {
    text += fmt::format("  executions {} to {}", begin.first_execution(), begin.last_execution());
  } else if (begin.first_execution() != 0) {
    text += fmt::format("  from execution {}", begin.first_execution());
  }
  return text;
}

// Returns a line such as "store takes no data for 12.0 s, 1,234 events wait at agents, 0 B free:
// writing chunks: the disk is full". The text is last because a narrow window cuts the line.
std::string CaptureProgress::StoreLine() const {
  const v1::StoreProblem& problem = capture_.store_problem();
  std::string text =
      fmt::format("store takes no data for {}, {} events wait at agents",
                  FormatDuration(Since(problem.since_realtime_ns(), capture_.server_realtime_ns())),
                  FormatCount(EventsWaiting(capture_)));
  if (problem.has_free_bytes()) text += fmt::format(", {} free", FormatBytes(problem.free_bytes()));
  return text + ": " + problem.text();
}

int CaptureProgress::GradeOf(const v1::CaptureWorkerStatus& worker) const {
  // If no worker at all delivers events, none of them is conspicuous.
  const bool can_be_silent = events_.per_second > 0;
  const bool is_stopping = capture_.state() == v1::CAPTURE_STATE_STOPPING;
  const bool is_awaited = is_stopping ? worker.state() != v1::CAPTURE_WORKER_STATE_COMPLETE
                                      : can_be_silent && RateOf(worker) == 0;
  if (IsLeftOut(worker)) return 0;
  if (worker.events_lost() > 0 || worker.events_lost_unknown()) return 1;
  return is_awaited ? 2 : 3;
}

std::vector<const v1::CaptureWorkerStatus*> CaptureProgress::InOrder(const WorkerRanks& ranks,
                                                                     size_t room) const {
  // Rows that all fit keep their places while states change; otherwise grades decide, then losses.
  const bool fits = static_cast<size_t>(capture_.workers_size()) <= room;
  const auto order = [&](const v1::CaptureWorkerStatus& worker) {
    return std::tuple(fits ? 0 : GradeOf(worker),
                      fits ? 0 : std::numeric_limits<uint64_t>::max() - worker.events_lost(),
                      ranks.PlaceOf(worker));
  };
  std::vector<const v1::CaptureWorkerStatus*> workers;
  for (const v1::CaptureWorkerStatus& worker : capture_.workers()) workers.push_back(&worker);
  std::stable_sort(workers.begin(), workers.end(),
                   [&](const auto* a, const auto* b) { return order(*a) < order(*b); });
  return workers;
}

std::vector<std::string> CaptureProgress::Row(const v1::CaptureWorkerStatus& worker,
                                              const WorkerRanks& ranks) const {
  return {worker.worker().instance_id(),
          worker.framework()           ? "framework"
          : worker.worker().pid() == 0 ? "-"
                                       : std::to_string(worker.worker().pid()),
          ranks.Format(worker.worker()),
          OutcomeName(worker.state()),
          FormatRate(RateOf(worker)),
          FormatLost(worker.events_lost(), worker.events_lost_unknown()),
          FormatCount(worker.events_read()),
          FormatBytes(worker.bytes_read()),
          FormatBoundOf(capture_, worker.worker().instance_id()),
          ReasonOf(worker)};
}

std::vector<std::string> CaptureProgress::Lines(const WorkerRanks& ranks, const WindowSize& window,
                                                const std::string& hint) const {
  std::vector<std::string> lines = {FirstLine()};
  if (!capture_.workers().empty()) lines.push_back(SecondLine());
  if (capture_.has_store_problem()) lines.push_back(StoreLine());
  // Other lines of the screen: the table's header, the count of workers that are not shown, the
  // hint, and one line that stays free for the cursor.
  const size_t others = lines.size() + 4;
  const size_t room = window.rows > others ? window.rows - others : 0;
  const std::vector<const v1::CaptureWorkerStatus*> workers = InOrder(ranks, room);
  const size_t shown = std::min(room, workers.size());
  if (shown > 0) {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < shown; ++i) rows.push_back(Row(*workers[i], ranks));
    const std::string table = FormatTable({"INSTANCE", "PID", "GIDS", "STATE", "EVENTS/S", "LOST",
                                           "EVENTS", "SIZE", "CLOCK WITHIN", ""},
                                          rows);
    for (size_t at = 0; at < table.size();) {
      const size_t end = table.find('\n', at);
      lines.push_back(table.substr(at, end - at));
      at = end + 1;
    }
    if (shown < workers.size()) {
      lines.push_back(fmt::format("… and {} more{}", workers.size() - shown,
                                  GradeOf(*workers[shown]) == 3 ? " (no problems)" : ""));
    }
  }
  if (!hint.empty()) lines.push_back(hint);
  // The last column stays free because some terminals wrap after it.
  for (std::string& line : lines) line = CutToColumns(line, window.columns - 1);
  return lines;
}

}  // namespace neurontrace::cli
