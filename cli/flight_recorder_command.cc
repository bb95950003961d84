// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/capture_defaults.h"
#include "cli/capture_options.h"
#include "cli/capture_progress.h"
#include "cli/capture_view.h"
#include "cli/capture_watch.h"
#include "cli/command.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/shared_options.h"
#include "cli/standing_capture.h"
#include "cli/text.h"
#include "cli/worker_ranks.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace::cli {
namespace {

// Lines of the table: workers with a problem come first, each group in the order of jobs and ranks.
constexpr size_t kLinesShown = 64;

// Returns the state of a worker's rings: "on", or what keeps them from recording.
std::string StateOf(const v1::CaptureWorkerStatus& worker) {
  if (worker.state() == v1::CAPTURE_WORKER_STATE_RECORDING) return "on";
  return OutcomeName(worker.state());
}

// Returns the event types as typed, or "all" for the default.
std::string Types(const v1::CaptureSpec& spec) {
  if (spec.event_types().empty()) return "all";
  std::string text;
  for (const std::string& type : spec.event_types()) text += (text.empty() ? "" : ",") + type;
  return text;
}

// Returns a flight recorder as text: which workers keep their rings, the rings' size, since when,
// and what suspends it on some. Workers with a problem come first. Pure.
std::string FormatFlightRecorder(const v1::Capture& capture, const WorkerRanks& ranks) {
  const v1::CaptureSpec& spec = capture.spec();
  // 0 in the specification means the default.
  const uint64_t ring = spec.ring_events_per_core() == 0 ? limits::kRingEventsPerCoreDefault
                                                         : spec.ring_events_per_core();
  std::string out = fmt::format(
      "flight recorder  {}{}{}\n"
      "workers          {}\n"
      "since            {}\n"
      "rings            {} events a core\n"
      "event types      {}\n",
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

// Options of the three subcommands.
struct FlightRecorderOptions {
  CLI::App* on = nullptr;
  CaptureOptions capture;  // of `on`
  StandingOptions standing;
};

// Turns a flight recorder on and waits until its workers record. Returns kExitIncomplete if some do
// not.
int EnableRecorder(Context& context, FlightRecorderOptions& options) {
  YieldToTyped(*options.on, context.config_origins, options.capture);
  auto spec = SpecOf(options.capture);
  if (!spec.ok()) {
    return FailUsage(NamingDefaults(*options.on, context.config_origins, spec.status()));
  }
  spec->set_mode(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  // Framework files are not in rings.
  spec->set_include_framework(false);
  CaptureWatch watch(context);
  v1::Capture capture;
  if (const auto ended = StartStanding(context, watch, *spec, capture)) return *ended;
  const int code = ExitCodeOf(capture);
  Print("{}", FormatFlightRecorder(capture, FetchRanks(context)));
  if (const std::string left_out = DescribeDefaultFilter(*spec); !left_out.empty()) {
    Print("{}\n", left_out);
  }
  if (capture.workers().empty() && code != kExitFailed) {
    Print("No worker is selected yet; matching workers that start later join.\n");
  } else if (code != kExitFailed) {
    Print(
        "neurontrace capture --last 20s records the rings' events; neurontrace flight-recorder off "
        "turns it off\n");
  }
  return code;
}

// Fetches ranks for the first one only.
int ShowFlightRecorders(Context& context, const std::string& job) {
  std::optional<WorkerRanks> ranks;
  return ShowStanding(context, kFlightRecorderKind, job, [&](const v1::Capture& capture) {
    if (!ranks) ranks = FetchRanks(context);
    return FormatFlightRecorder(capture, *ranks);
  });
}

}  // namespace

void AddFlightRecorderCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<FlightRecorderOptions>();
  CLI::App* command = app.add_subcommand(
      "flight-recorder",
      "Keep the most recent events of every core in its process, for capture --last");
  command->footer(
      "Examples:\n"
      "  neurontrace flight-recorder on --ring-events 262144 --event-type hardware\n"
      "  neurontrace flight-recorder status\n"
      "  neurontrace capture --last 20s -o before.pftrace\n"
      "  neurontrace flight-recorder off\n\n"
      "Events stay in the processes until a capture collects them. Any other kind of capture that "
      "needs a worker suspends the flight recorder there while it runs.\n"
      "Exit codes: 0 on (off: turned off), 1 failed, or off where status was asked for, 2 wrong "
      "usage, 3 on, but not on all selected workers.");
  command->require_subcommand(1);
  CLI::App* on =
      command->add_subcommand("on", "Turn the flight recorder on for the selected workers");
  AddSelectionOptions(*on, options->capture);
  AddEventOptions(*on, options->capture);
  AddConditionOptions(*on, options->capture);
  CLI::App* off = command->add_subcommand("off", "Turn it off and discard the rings' events");
  CLI::App* status =
      command->add_subcommand("status", "Show which workers keep rings, and since when");
  AddStandingOptions(kFlightRecorderKind, *off, *status, options->standing);
  options->on = on;
  on->callback([&context, &run, options] {
    run = [&context, options] { return EnableRecorder(context, *options); };
  });
  off->callback([&context, &run, options] {
    run = [&context, options] {
      return TurnOffStanding(context, kFlightRecorderKind, options->standing);
    };
  });
  status->callback([&context, &run, options] {
    run = [&context, options] { return ShowFlightRecorders(context, options->standing.shown_job); };
  });
}

}  // namespace neurontrace::cli
