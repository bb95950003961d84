// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <memory>

#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/output_place.h"
#include "cli/record_session.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/quantity.h"
#include "lib/base/status.h"
#include "lib/trace/event_filter.h"
#include "lib/wire/field_checks.h"

namespace neurontrace::cli {
namespace {

// A continuous capture must have a retention; this one is longer than any run.
constexpr uint64_t kRetentionNs = 1'000ull * 24 * 3'600 * 1'000'000'000;

// Values of the options, and what Complete makes of them.
struct RecordArguments {
  RecordOptions options;
  std::vector<std::string> words;  // in the command's place, without the --
  std::string name;
  std::string format;
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  bool all_events = false;
  uint64_t ring_events = 0;
};

// Returns a name in the current directory that contains the time, so that runs do not overwrite
// each other: "neurontrace-20261122-011530Z.pftrace".
std::string NameWithTime(v1::ExportFormat format) {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  strftime(text, sizeof(text), "neurontrace-%Y%m%d-%H%M%SZ", &parts);
  const std::string_view usual = ExportFormatInfoOf(format).default_path;
  const size_t dot = usual.rfind('.');  // a directory has none
  return dot == std::string_view::npos ? text : text + std::string(usual.substr(dot));
}

// Checks the options and completes `arguments.options`. Returns INVALID_ARGUMENT for wrong usage.
// Makes no files.
absl::Status Complete(const Context& context, RecordArguments& arguments) {
  RecordOptions& options = arguments.options;
  if (!arguments.words.empty()) {
    return InvalidArgument("write -- before the command: neurontrace record -- {} …",
                           arguments.words.front());
  }
  if (context.command_line.empty()) {
    return InvalidArgument("no command given; use neurontrace record -- COMMAND …");
  }
  options.command = context.command_line;
  v1::CaptureSpec& spec = options.spec;
  // The checks below repeat those of the aggregator, which starts only later.
  RETURN_IF_ERROR(CheckIdentityText("--name", arguments.name));
  spec.set_name(arguments.name.empty() ? options.command[0] : arguments.name);
  for (const auto& text : SplitList(arguments.cores)) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> cores, ParseCoreList(text));
    for (const uint32_t core : cores) spec.add_neuron_cores(core);
  }
  const std::vector<std::string> types = SplitList(arguments.event_types);
  RETURN_IF_ERROR(EventFilter::Parse(types).status());
  for (const auto& type : types) spec.add_event_types(type);
  spec.set_all_events(arguments.all_events);
  spec.set_ring_events_per_core(arguments.ring_events);
  spec.set_include_neuron(true);
  // A continuous capture begins before there is a worker. The retention deletes nothing during the
  // run.
  spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  spec.set_retention_ns(kRetentionNs);
  spec.set_include_framework(!options.framework_directory.empty());
  if (!options.path.empty() && IsStandardOutput(options.path)) {
    return InvalidArgument("-o {}: standard output belongs to the command; give a file name",
                           options.path);
  }
  ASSIGN_OR_RETURN(options.request, RequestNamedBy(arguments.format, options.path));
  if (options.path.empty()) options.path = NameWithTime(options.request.format());
  if (options.directory.empty()) {
    const char* const temporary = getenv("TMPDIR");
    // /var/tmp is on a disk, while /tmp may be in memory and too small for events.
    options.directory = temporary == nullptr || *temporary == '\0' ? "/var/tmp" : temporary;
  }
  options.places.own_directory = OwnDirectory();
  return absl::OkStatus();
}

// Runs the command and returns its exit code, or a RecordExitCode if it did not run. The order of
// the session's functions is that of its header.
int RunRecord(Context& context, RecordArguments& arguments) {
  if (const absl::Status status = Complete(context, arguments); !status.ok()) {
    Fail(status);
    return kExitUsage;
  }
  arguments.options.quiet = context.quiet;
  arguments.options.json = context.json;
  RecordSession session(context, arguments.options);
  if (const absl::Status status = session.Begin(); !status.ok()) {
    session.ReportFailure(status);
    return session.exit_code();
  }
  session.AwaitCommand();
  session.Conclude();
  return session.exit_code();
}

// Adds the options that select events.
void AddSelectionOptions(CLI::App& command, RecordArguments& arguments) {
  AddEventTypes(command, arguments.event_types);
  command.add_flag("--all-events", arguments.all_events,
                   "Include allocation events, which are numerous and omitted by default");
  AddCores(command, arguments.cores);
  command
      .add_option("--ring-events", arguments.ring_events,
                  "Capacity of the runtime's ring of each core, in events (default 65536)")
      ->check(CheckWholeNumber);
  command
      .add_option("--framework-dir", arguments.options.framework_directory,
                  "Directory to which the command's PyTorch or JAX profiler writes trace files")
      ->check(CLI::ExistingDirectory);
}

// Adds the options for programs and directories.
void AddPlaces(CLI::App& command, RecordOptions& options) {
  command
      .add_option("--programs", options.places.programs,
                  "Directory of neurontrace-agent and neurontrace-aggregator (default: beside this "
                  "program)")
      ->envname("NEURONTRACE_PROGRAMS");
  command
      .add_option("--tap", options.places.tap,
                  "Tap library (default: found relative to --programs)")
      ->envname("NEURONTRACE_TAP");
  command
      .add_option("--directory", options.directory,
                  "Directory for events while recording (default: $TMPDIR or /var/tmp)")
      ->check(CLI::ExistingDirectory);
  command.add_flag("--keep-store", options.keep_store,
                   "Keep the store in --directory, so that an aggregator can export it again");
}

}  // namespace

void AddRecordCommand(CLI::App& app, Context& context, Run& run) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = app.add_subcommand(
      "record", "Run a command, record it and its child processes, and write a trace when it ends");
  command->add_option("COMMAND", arguments->words, "Command to run, after --, with its arguments");
  command
      ->add_option("-o,--out", arguments->options.path,
                   "Output file (a new directory for formats of several files; default: "
                   "neurontrace-TIME.pftrace here)")
      ->check(NotEmpty("omit it for the default name"));
  AddFormat(*command, arguments->format);
  command->add_option("--name", arguments->name, "Name of the capture")
      ->check(NotEmpty("omit it to give no name"));
  AddSelectionOptions(*command, *arguments);
  AddPlaces(*command, arguments->options);
  command->footer(
      "Examples:\n"
      "  neurontrace record -- python train.py --steps 100\n"
      "  neurontrace record -o trace.pftrace --event-type hardware -- torchrun train.py\n\n"
      "Works on one machine without daemons to set up: it runs a private agent and aggregator in\n"
      "the background, and preloads the tap into every process that the command starts.\n"
      "stdin, stdout and signals belong to the command; messages of neurontrace go to stderr.\n\n"
      "Exit codes: the command's own, 128+N if signal N ended it; 127 command not found,\n"
      "126 it cannot be run, 125 recording could not start, so it was not run; 2 wrong usage.");
  command->callback([&context, &run, arguments] {
    run = [&context, arguments] { return RunRecord(context, *arguments); };
  });
}

}  // namespace neurontrace::cli
