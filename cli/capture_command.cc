// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "cli/capture_defaults.h"
#include "cli/capture_options.h"
#include "cli/capture_view.h"
#include "cli/capture_watch.h"
#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/open_instructions.h"
#include "cli/outcome_view.h"
#include "cli/output_place.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

// Returns `part` as a percentage of `whole` with as many digits as are useful. An empty `whole`, as
// of a full disk, has no percentage.
std::string FormatShare(uint64_t part, uint64_t whole) {
  if (whole == 0) return part == 0 ? "0 %" : "over 100 %";
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent > 0 && percent < 0.1) return "less than 0.1 %";
  return percent < 10 ? fmt::format("{:.1f} %", percent) : fmt::format("{:.0f} %", percent);
}

// Returns a rate in bits of the network, as interfaces are rated: 10^6 bits, not 2^20.
std::string FormatMegabits(double bytes_per_second) {
  return fmt::format("{:.1f} Mbit/s", bytes_per_second * 8 / 1e6);
}

// Returns how many Neuron workers would record, and on how many instances. Framework files and
// workers that were left out do not count.
std::string FormatWorkers(const v1::Capture& capture) {
  size_t would = 0;
  std::set<std::string> instances;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (worker.framework() || IsLeftOut(worker)) continue;
    ++would;
    instances.insert(worker.worker().instance_id());
  }
  return fmt::format("{} on {}", FormatCounted(would, "worker"),
                     FormatCounted(instances.size(), "instance"));
}

// Returns an estimated rate or count as an integer; estimates below 0 count as 0.
uint64_t Rounded(double value) { return static_cast<uint64_t>(std::llround(std::max(value, 0.0))); }

// Returns the cost of a capture as lines for a terminal, and every reason for which the aggregator
// would refuse it. A capture without a duration is projected over one hour.
std::string FormatPreview(const v1::Capture& capture) {
  const v1::CapturePreview& preview = capture.preview();
  std::string out = fmt::format(
      "would record  {}\nrate          {} events/s, {}/s, measured over {}\n",
      FormatWorkers(capture), FormatCount(Rounded(preview.events_per_second())),
      FormatBytes(Rounded(preview.bytes_per_second())), FormatDuration(preview.measured_ns()));
  uint64_t bytes = preview.bytes();
  if (preview.duration_ns() != 0) {
    out += fmt::format("in {:<9}  {} events, {}\n", FormatDuration(preview.duration_ns()),
                       FormatCount(preview.events()), FormatBytes(bytes));
  } else {
    bytes = Rounded(preview.bytes_per_second() * 3600);
    out +=
        fmt::format("in an hour    {} events, {} (no --duration was given)\n",
                    FormatCount(Rounded(preview.events_per_second() * 3600)), FormatBytes(bytes));
  }
  out +=
      fmt::format("disk          {} of {} free\n", FormatShare(bytes, preview.store_free_bytes()),
                  FormatBytes(preview.store_free_bytes()));
  // The aggregator reports this maximum if no quota applies.
  if (preview.quota_left_bytes() != std::numeric_limits<uint64_t>::max()) {
    out +=
        fmt::format("quota         {} of {} left\n", FormatShare(bytes, preview.quota_left_bytes()),
                    FormatBytes(preview.quota_left_bytes()));
  }
  out +=
      fmt::format("network       {} to the aggregator", FormatMegabits(preview.bytes_per_second()));
  if (!preview.most_instance_id().empty()) {
    out += fmt::format(", at most {} from one instance ({})",
                       FormatMegabits(preview.most_bytes_per_second()), preview.most_instance_id());
  }
  out += "\n";
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  for (const std::string& objection : preview.objections()) {
    out += "would be refused: " + objection + "\n";
  }
  return out + "Nothing was recorded.\n";
}

// The file that a command writes at the end, and its format. An empty path asks for no file, an
// empty format for that of the path's extension.
struct EndOptions {
  std::string path;
  std::string format;
};

// The commands `capture`, `capture start` and `capture stop`, each with options of its own. Owned
// by the parser's callback, so that it outlives the parsing.
struct Commands {
  CLI::App* capture = nullptr;
  CLI::App* start = nullptr;
  CLI::App* stop = nullptr;
  CaptureOptions of_capture;
  CaptureOptions of_start;
  EndOptions end_of_capture;
  EndOptions end_of_stop;
  std::string stopped_id;
};

// Writes the capture to the file of `options` and prints how to open it, or how to repeat the
// export after a failure. Returns the exit code of the export.
int Export(Context& context, const v1::Capture& capture, const EndOptions& options,
           InterruptWatcher& interrupts) {
  auto request = RequestNamedBy(options.format, options.path);
  if (!request.ok()) return FailUsage(request.status());
  request->set_capture_id(capture.capture_id());
  // With --output json a script parses standard output as one object, which is the capture's.
  if (context.json) context.results = stderr;
  const int code = ExportToFile(
      context, *request,
      {.path = options.path, .interrupts = &interrupts, .resumed_by = "the command below"});
  if (code == kExitFailed) {
    Print(stderr,
          "  The capture is stored all the same.\n"
          "  To write it:  neurontrace export {}{}{} -o {}\n",
          capture.capture_id(), options.format.empty() ? "" : " --format ", options.format,
          options.path);
  }
  PrintOpenInstructions(context, code, *request, options.path);
  return code;
}

// Ends every command that has recorded: prints the stored capture and exports it if a file was
// asked for. Returns the capture's exit code unless the export fails. Asks for the capture again
// because the messages of a watch lack streams and most of the certificate.
int Conclude(Context& context, const v1::Capture& watched, const EndOptions& options,
             InterruptWatcher& interrupts) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, watched.capture_id(), capture); !status.ok()) {
    return Fail(context, status);
  }
  const ExitCode code = ExitCodeOf(capture);
  // Standard output belongs to the trace if it is exported there.
  FILE* out = !options.path.empty() && IsStandardOutput(options.path) ? stderr : stdout;
  if (context.json) {
    Print(out, "{}", FormatCaptureJson(capture));
  } else {
    WorkerRanks ranks = FetchRanks(context);
    ranks.Take(capture);
    const size_t columns = out == stdout ? context.columns : 0;
    Print(out, "{}", FormatCapture(capture, ranks, CaptureDetail::kShort, {.columns = columns}));
  }
  // A capture that failed has nothing to export.
  if (options.path.empty() || code == kExitFailed) return code;
  const int exported = Export(context, capture, options, interrupts);
  return exported == kExitDone ? code : exported;
}

// Prints the result of a dry run. Returns kExitFailed if the capture itself would be refused or
// would record nobody, so that a script can test it.
int ConcludePreview(const Context& context, const v1::Capture& capture) {
  Print("{}", context.json ? FormatCaptureJson(capture) : FormatPreview(capture));
  const bool would_begin = !capture.workers().empty() &&
                           capture.state() != v1::CAPTURE_STATE_NOT_BEGUN &&
                           capture.preview().objections().empty();
  return would_begin ? kExitDone : kExitFailed;
}

// Prints on stderr which events the default filter omits, if any.
void PrintOmittedEvents(const Context& context, const v1::CaptureSpec& spec) {
  if (context.json || context.quiet) return;
  if (const std::string left_out = DescribeDefaultFilter(spec); !left_out.empty()) {
    Print(stderr, "{}\n", left_out);
  }
}

// Prints the id on stderr before anything is recorded, so that the user can stop the capture from
// elsewhere if this program is killed.
void Announce(const Context& context, const v1::CaptureSpec& spec, const v1::Capture& capture) {
  if (context.json || context.quiet) return;
  const bool has_end =
      spec.duration_ns() != 0 || spec.executions() != 0 || spec.mode() != v1::CAPTURE_MODE_STREAM;
  Print(stderr, "capture {}{}\n", capture.capture_id(), has_end ? "" : ": Ctrl-C stops it");
  PrintOmittedEvents(context, spec);
}

// Refuses options of `capture` that precede `start` or `stop`. The parser accepts options of every
// preceding command, but those of `capture` do not apply to its subcommands, which have their own.
// Returns INVALID_ARGUMENT with the correct position.
absl::Status RefuseOptionsOf(const CLI::App& command, const CLI::App& chosen) {
  // Options without a long name, such as positional ones, are not inherited.
  for (const CLI::Option* const option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames().back();
    const std::string path = PathOf(chosen);
    if (chosen.get_option_no_throw("--" + name) != nullptr) {
      return InvalidArgument("--{} must come after {}: neurontrace {} --{} …", name,
                             chosen.get_name(), path, name);
    }
    return InvalidArgument("--{} does not apply to neurontrace {}; see neurontrace {} --help{}",
                           name, path, path,
                           name == "out" || name == "format"
                               ? "; neurontrace capture stop ID -o FILE writes a file at the end"
                               : "");
  }
  return absl::OkStatus();
}

// Returns the capture that the command line and the files of options ask for. Drops values of files
// that contradict typed ones. A refusal names the lines of the files that contributed to it.
// Modifies `options`.
absl::StatusOr<v1::CaptureSpec> SpecOf(const Context& context, const CLI::App& command,
                                       CaptureOptions& options) {
  YieldToTyped(command, context.config_origins, options);
  auto spec = SpecOf(options);
  if (spec.ok()) return spec;
  return NamingDefaults(command, context.config_origins, spec.status());
}

// Checks the output before anything is recorded or stopped, as a file that cannot be written would
// be noticed only at the end. Returns kExitDone if it can be written, else prints why not.
int CheckEnd(const EndOptions& options) {
  if (options.path.empty()) return kExitDone;
  const auto request = RequestNamedBy(options.format, options.path);
  if (!request.ok()) return FailUsage(request.status());
  const absl::Status place = CheckOutputPlace(options.path, MakesManyFiles(*request));
  return place.ok() ? kExitDone : Fail(place);
}

// Prints on stderr why a capture that was started records nothing: its warnings, then a reason for
// each worker up to a limit.
void PrintWhyNothingBegins(const v1::Capture& capture) {
  constexpr size_t kWorkersShownMax = 16;
  Print(stderr, "neurontrace: capture {} records nothing{}\n", capture.capture_id(),
        HasEnded(capture) ? "" : " yet; workers that start later join it");
  for (const std::string& warning : capture.warnings()) Print(stderr, "  {}\n", warning);
  size_t workers = 0;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    // Framework files do not explain why no worker records.
    if (worker.framework() || ++workers > kWorkersShownMax) continue;
    Print(stderr, "  {} pid {}: {}\n", worker.worker().instance_id(), worker.worker().pid(),
          ReasonOf(worker));
  }
  if (workers > kWorkersShownMax) {
    Print(stderr, "  and {}\n", FormatCounted(workers - kWorkersShownMax, "more worker"));
  }
  if (workers == 0 && capture.warnings().empty()) {
    Print(stderr, "  no worker matches; `neurontrace workers` lists all workers\n");
  }
}

// Returns whether a capture that was followed until it began has no worker to record. Framework
// files may appear later, so without Neuron events an empty capture is not a failure.
bool RecordsNothing(const v1::Capture& capture) {
  if (capture.state() == v1::CAPTURE_STATE_NOT_BEGUN) return true;
  if (capture.events() != 0) return false;
  if (capture.workers().empty()) return capture.spec().include_neuron();  // files may come later
  return std::all_of(capture.workers().begin(), capture.workers().end(), IsLeftOut);
}

// Fails because standard output is closed or full. Only the id leads back to the capture, so it is
// printed on stderr instead. Returns kExitFailed.
int FailToPrintId(const absl::Status& status, const std::string& id) {
  Fail(status);
  Print(stderr,
        "  The capture keeps running. Its id is {}; to stop it:  neurontrace capture stop {}\n", id,
        id);
  return kExitFailed;
}

// Starts a capture and returns once it records. Returns kExitIncomplete if no worker records;
// workers may still join it.
int RunStart(Context& context, Commands& commands) {
  if (const auto status = RefuseOptionsOf(*commands.capture, *commands.start); !status.ok()) {
    return FailUsage(status);
  }
  const auto spec = SpecOf(context, *commands.start, commands.of_start);
  if (!spec.ok()) return FailUsage(spec.status());
  CaptureWatch watch(context);
  v1::Capture capture;
  if (const auto status = watch.Start(*spec, capture); !status.ok()) {
    return FailStart(context, status);
  }
  PrintOmittedEvents(context, *spec);
  const std::string id = capture.capture_id();
  // The id is printed before the wait, so that a script that is interrupted can stop the capture.
  if (!context.json) {
    Print("{}\n", id);
    if (const auto status = FlushOutput(); !status.ok()) return FailToPrintId(status, id);
  }
  const auto followed = watch.Follow(capture, {.interrupt_stops = false, .until_begun = true});
  if (context.json) {
    Print("{}", FormatCaptureJson(capture));
    if (const auto status = FlushOutput(); !status.ok()) return FailToPrintId(status, id);
  }
  if (!followed.ok()) return FailWatching(context, capture, followed);
  if (!RecordsNothing(capture)) return kExitDone;
  if (!context.json) PrintWhyNothingBegins(capture);
  return kExitIncomplete;
}

// Records until the end, or for a standing capture until it has begun, then prints a summary and
// writes the file if one was asked for.
int RunCapture(Context& context, Commands& commands) {
  const auto spec = SpecOf(context, *commands.capture, commands.of_capture);
  if (!spec.ok()) return FailUsage(spec.status());
  const bool is_preview = spec->mode() == v1::CAPTURE_MODE_PREVIEW;
  const bool is_standing = spec->mode() == v1::CAPTURE_MODE_CONTINUOUS;
  EndOptions& end = commands.end_of_capture;
  if (is_preview || is_standing) {
    // A typed file contradicts these modes; one from a file of options is a default that does not
    // apply.
    if (IsTyped(*commands.capture, "--out")) {
      return FailUsage(InvalidArgument(
          "-o with {}: {}", is_preview ? "--dry-run" : "--continuous",
          is_preview ? "a dry run records nothing to write"
                     : "a continuous capture has no end at which to write a file; use neurontrace "
                       "export --continuous --from -5m --to now -o FILE"));
    }
    end.path.clear();  // of a file of options
  }
  if (const int code = CheckEnd(end); code != kExitDone) return code;
  CaptureWatch watch(context);
  v1::Capture capture;
  if (const auto status = watch.Start(*spec, capture); !status.ok()) {
    return FailStart(context, status);
  }
  Announce(context, *spec, capture);
  const WatchOptions following = {.until_begun = is_standing};
  if (const auto status = watch.Follow(capture, following); !status.ok()) {
    return FailWatching(context, capture, status);
  }
  return is_preview ? ConcludePreview(context, capture)
                    : Conclude(context, capture, end, watch.interrupts());
}

// Stops a capture, waits until its data is stored, then concludes as `capture` does.
int RunStop(Context& context, Commands& commands) {
  if (const auto status = RefuseOptionsOf(*commands.capture, *commands.stop); !status.ok()) {
    return FailUsage(status);
  }
  // The output is checked first: a capture that has been stopped cannot be resumed.
  if (const int code = CheckEnd(commands.end_of_stop); code != kExitDone) return code;
  CaptureWatch watch(context);
  v1::Capture capture;
  if (const auto status = StopCapture(context, commands.stopped_id, capture); !status.ok()) {
    return Fail(context, status);
  }
  if (const auto status = watch.Follow(capture, {}); !status.ok()) {
    return FailWatching(context, capture, status);
  }
  return Conclude(context, capture, commands.end_of_stop, watch.interrupts());
}

// Adds -o and --format. `options` must outlive the parsing.
void AddOutput(CLI::App& command, EndOptions& options) {
  command
      .add_option("-o,--out", options.path,
                  "Export to this file at the end (- for standard output)")
      ->check(NotEmpty("omit it to write no file"));
  AddFormat(command, options.format);
}

// Adds the options that `capture` and `capture start` share.
void AddAllOptions(CLI::App& command, CaptureOptions& options) {
  AddSelectionOptions(command, options);
  AddEventOptions(command, options);
  AddTimeOptions(command, options);
  AddConditionOptions(command, options);
}

}  // namespace

void AddCaptureCommand(CLI::App& app, Context& context, Run& run) {
  auto commands = std::make_shared<Commands>();
  CLI::App* command = app.add_subcommand(
      "capture", "Record matching workers, wait until all data is stored, print a summary");
  command->footer(
      "Examples:\n"
      "  neurontrace capture --duration 30s -o trace.pftrace\n"
      "  neurontrace capture --job llama-70b --executions 20 --require all\n"
      "  neurontrace capture --duration 5s --event-type hardware,^cc_running --instance i-0f20\n"
      "  neurontrace capture --duration 20s --framework -o trace.pftrace\n"
      "  neurontrace capture --duration 60s --framework --at-step next --steps 5\n"
      "  neurontrace capture --last 20s -o before.pftrace    (with a flight recorder on)\n"
      "  neurontrace capture --continuous --keep 10m\n"
      "  neurontrace capture --duration 30s --dry-run\n"
      "  neurontrace capture            (until Ctrl-C)\n"
      "  ID=$(neurontrace capture start); …; neurontrace capture stop $ID -o trace.json\n\n"
      "Exit codes: 0 complete, 1 failed, not begun or no worker matched, 2 wrong usage, 3 ended, "
      "but something that was selected is missing (start: no worker records).");
  command->require_subcommand(0, 1);
  AddAllOptions(*command, commands->of_capture);
  AddOutput(*command, commands->end_of_capture);
  CLI::App* start = command->add_subcommand(
      "start", "Start a capture, print its id, and return once it is recording");
  AddAllOptions(*start, commands->of_start);
  CLI::App* stop =
      command->add_subcommand("stop", "Stop a capture and wait until its data is stored");
  stop->add_option("ID", commands->stopped_id, "Capture id, or a unique prefix of one")
      ->required()
      ->check(NotEmpty("neurontrace captures lists them"));
  AddOutput(*stop, commands->end_of_stop);
  commands->capture = command;
  commands->start = start;
  commands->stop = stop;
  command->callback([&context, &run, commands] {
    auto* const chosen = commands->stop->parsed()    ? RunStop
                         : commands->start->parsed() ? RunStart
                                                     : RunCapture;
    run = [&context, commands, chosen] { return chosen(context, *commands); };
  });
}

}  // namespace neurontrace::cli
