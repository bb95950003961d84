// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

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
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace::cli {
namespace {

// Options of the three subcommands.
struct WatchCommandOptions {
  CLI::App* on = nullptr;
  CaptureOptions capture;  // of `on`
  StandingOptions standing;
};

// Returns a watch as text: whom it records, since when, what it keeps and may cost. Pure.
std::string FormatWatch(const v1::Capture& capture) {
  const v1::CaptureSpec& spec = capture.spec();
  std::string out = fmt::format(
      "watch        {}\n"
      "workers      {}, {} recording\n"
      "since        {}\n"
      "keeps        {} s of events\n",
      capture.capture_id(), IsOfEveryJob(spec) ? "all" : FormatSelection(spec),
      std::count_if(capture.workers().begin(), capture.workers().end(),
                    [](const v1::CaptureWorkerStatus& worker) {
                      return worker.state() == v1::CAPTURE_WORKER_STATE_RECORDING;
                    }),
      FormatTime(BeginOf(capture)), spec.retention_ns() / 1'000'000'000);
  if (spec.budget_core_ppm() != 0) {
    out += fmt::format("budget       {:g} % of a processor for each worker\n",
                       spec.budget_core_ppm() / 10'000.0);
  }
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  return out;
}

// Returns the request, with the defaults of a watch. Fails as SpecOf does. Pure.
absl::StatusOr<v1::CaptureSpec> WatchSpecOf(const CaptureOptions& options) {
  CaptureOptions standing = options;
  standing.continuous = true;
  // Framework files are not judged.
  standing.no_framework = true;
  if (standing.name.empty()) standing.name = "watch";
  if (options.keep.empty())
    standing.keep = fmt::format("{}s", limits::kWatchKeepNs / 1'000'000'000);
  auto spec = SpecOf(standing);
  if (!spec.ok()) return spec;
  spec->set_watch(true);
  if (options.budget_core.empty()) spec->set_budget_core_ppm(limits::kWatchCorePpm);
  return spec;
}

// Turns a watch on and waits until its workers record. A watch of the same workers that is on
// already is reported, and is no error.
int EnableWatch(Context& context, WatchCommandOptions& options) {
  YieldToTyped(*options.on, context.config_origins, options.capture);
  const auto spec = WatchSpecOf(options.capture);
  if (!spec.ok()) {
    return FailUsage(NamingDefaults(*options.on, context.config_origins, spec.status()));
  }
  CaptureWatch watch(context);
  v1::ListCapturesReply running;
  if (const auto status = ListStanding(context, kWatchKind, "", running); !status.ok()) {
    return Fail(context, status);
  }
  for (const v1::Capture& known : running.captures()) {
    if (FormatSelection(known.spec()) != FormatSelection(*spec)) continue;
    if (context.json) {
      Print("{}", FormatCaptureJson(known));
    } else {
      Print("watch {} is already on\n", known.capture_id());
    }
    return ExitCodeOf(known);
  }
  v1::Capture capture;
  if (const auto ended = StartStanding(context, watch, *spec, capture)) return *ended;
  const int code = ExitCodeOf(capture);
  Print("{}", FormatWatch(capture));
  if (code != kExitFailed) {
    Print("neurontrace why --live says who is slow or hung; neurontrace watch off turns it off\n");
  }
  return code;
}

}  // namespace

void AddWatchCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<WatchCommandOptions>();
  CLI::App* command =
      app.add_subcommand("watch", "Record continuously what shows which rank is slow or hung");
  command->footer(
      "Examples:\n"
      "  neurontrace watch on --job llama-pretrain\n"
      "  neurontrace why --live\n"
      "  neurontrace watch off\n\n"
      "A watch is a continuous capture of executions and collectives. Any other capture that needs "
      "a "
      "worker suspends the watch there while it runs, and that worker is not judged meanwhile.\n"
      "Exit codes: 0 on (off: turned off), 1 failed, or off where status was asked for, 2 wrong "
      "usage, 3 on, but not on all selected workers.");
  command->require_subcommand(1);
  CLI::App* on = command->add_subcommand("on", "Turn the watch on for the selected workers");
  AddSelectionOptions(*on, options->capture);
  on->add_option("--keep", options->capture.keep, "Delete events older than this (default 10m)")
      ->check(NotEmpty("omit it for the default"));
  on->add_option("--keep-bytes", options->capture.keep_bytes,
                 "Delete the oldest events beyond this size: 5GB")
      ->check(NotEmpty("omit it for no limit"));
  on->add_option("--budget-core", options->capture.budget_core,
                 "Processor time that recording may use, per worker, as a share of one processor "
                 "(default 2%)")
      ->check(NotEmpty("omit it for the default"));
  on->add_option("--budget-rate", options->capture.budget_rate,
                 "Rate at which recording may send, per worker: 10MB/s")
      ->check(NotEmpty("omit it for no limit"));
  CLI::App* off = command->add_subcommand("off", "Turn it off; what it kept stays stored");
  CLI::App* status = command->add_subcommand("status", "Show which watches are on, and since when");
  AddStandingOptions(kWatchKind, *off, *status, options->standing);
  options->on = on;
  on->callback([&context, &run, options] {
    run = [&context, options] { return EnableWatch(context, *options); };
  });
  off->callback([&context, &run, options] {
    run = [&context, options] { return TurnOffStanding(context, kWatchKind, options->standing); };
  });
  status->callback([&context, &run, options] {
    run = [&context, options] {
      return ShowStanding(context, kWatchKind, options->standing.shown_job, FormatWatch);
    };
  });
}

}  // namespace neurontrace::cli
