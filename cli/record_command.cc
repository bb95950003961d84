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

constexpr uint64_t kRetentionNs = 1'000ull * 24 * 3'600 * 1'000'000'000;

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

// "neurontrace-20261122-011530Z.pftrace"
std::string NameWithTime(v1::ExportFormat format) {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  strftime(text, sizeof(text), "neurontrace-%Y%m%d-%H%M%SZ", &parts);
  const std::string_view usual = WordsOf(format).default_path;
  const size_t dot = usual.rfind('.');  // a directory has none
  return dot == std::string_view::npos ? text : text + std::string(usual.substr(dot));
}

absl::Status Complete(const Context& context, RecordArguments& arguments) {
  RecordOptions& options = arguments.options;
  if (!arguments.words.empty()) {
    return InvalidArgument("write -- before the command: neurontrace record -- {} …",
                           arguments.words.front());
  }
  if (context.command_words.empty()) {
    return InvalidArgument("no command is given: neurontrace record -- COMMAND …");
  }
  options.command = context.command_words;
  v1::CaptureSpec& spec = options.spec;
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
  // One that begins before there is anyone to record, and deletes nothing while it lasts.
  spec.set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  spec.set_retention_ns(kRetentionNs);
  spec.set_include_framework(!options.framework_directory.empty());
  if (!options.path.empty() && IsStandardOutput(options.path)) {
    return InvalidArgument("-o {}: name a file, as standard output is the command's", options.path);
  }
  ASSIGN_OR_RETURN(options.request, RequestNamedBy(arguments.format, options.path));
  if (options.path.empty()) options.path = NameWithTime(options.request.format());
  if (options.directory.empty()) {
    const char* const temporary = getenv("TMPDIR");
    options.directory = temporary == nullptr || *temporary == '\0' ? "/var/tmp" : temporary;
  }
  options.places.own_directory = OwnDirectory();
  return absl::OkStatus();
}

int RunRecord(Context& context, RecordArguments& arguments) {
  if (const absl::Status status = Complete(context, arguments); !status.ok()) {
    Fail(status);
    return kExitUsage;
  }
  arguments.options.quiet = context.quiet;
  arguments.options.json = context.json;
  RecordSession session(context, arguments.options);
  if (const absl::Status status = session.Begin(); !status.ok()) {
    session.TellFailure(status);
    return session.exit_code();
  }
  session.AwaitCommand();
  session.Conclude();
  return session.exit_code();
}

void AddWhatIsRecorded(CLI::App& command, RecordArguments& arguments) {
  command
      .add_option("--system-trace-filter-event-type,--event-type", arguments.event_types,
                  "Only these event types: names, hardware, software, ^name for all but")
      ->allow_extra_args(false);
  command.add_flag("--all-events", arguments.all_events,
                   "Also the many events of allocations, which are otherwise left out");
  command
      .add_option("--system-trace-filter-neuron-core,--core", arguments.cores,
                  "Only these cores, by index inside the process: 0,2,4-7")
      ->allow_extra_args(false);
  command
      .add_option("--ring-events", arguments.ring_events,
                  "Events that the runtime's ring of each core holds (default 65536)")
      ->check(CheckWholeNumber);
  command
      .add_option("--framework-dir", arguments.options.framework_directory,
                  "Directory in which the command's PyTorch or JAX profiler writes trace files")
      ->check(CLI::ExistingDirectory);
}

void AddPlaces(CLI::App& command, RecordOptions& options) {
  command
      .add_option("--programs", options.places.programs,
                  "Directory of neurontrace-agent and neurontrace-aggregator (default: beside this "
                  "program)")
      ->envname("NEURONTRACE_PROGRAMS");
  command.add_option("--tap", options.places.tap, "The tap (default: found from there)")
      ->envname("NEURONTRACE_TAP");
  command
      .add_option("--directory", options.directory,
                  "Where events are stored meanwhile (default: $TMPDIR or /var/tmp)")
      ->check(CLI::ExistingDirectory);
  command.add_flag("--keep-store", options.keep_store,
                   "Leave the store there, for an aggregator that exports it again");
}

}  // namespace

void AddRecordCommand(CLI::App& app, Context& context, Run& run) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = app.add_subcommand(
      "record", "Run a command, record it and what it starts, write a trace at its end");
  command->add_option("COMMAND", arguments->words,
                      "What to run, behind --, with its arguments as in a shell");
  command
      ->add_option("-o,--out", arguments->options.path,
                   "Output file (a new directory for formats of several files; default: "
                   "neurontrace-TIME.pftrace here)")
      ->check(NotEmpty("leave it out for a name of its own"));
  AddFormat(*command, arguments->format);
  command->add_option("--name", arguments->name, "A name for the capture")
      ->check(NotEmpty("leave it out where none is meant"));
  AddWhatIsRecorded(*command, *arguments);
  AddPlaces(*command, arguments->options);
  command->footer(
      "Examples:\n"
      "  neurontrace record -- python train.py --steps 100\n"
      "  neurontrace record -o trace.pftrace --event-type hardware -- torchrun train.py\n\n"
      "On one machine, with no daemon to set up: an agent and an aggregator of its own work in\n"
      "the background, and every process that the command starts is preloaded with the tap.\n"
      "stdin, stdout and signals are the command's; what is said here goes to stderr.\n\n"
      "Exit codes: the command's own, 128+N if signal N ended it; 127 there is no such command,\n"
      "126 it cannot be run, 125 recording could not begin, so it was not run; 2 wrong usage.");
  command->callback([&context, &run, arguments] {
    run = [&context, arguments] { return RunRecord(context, *arguments); };
  });
}

}  // namespace neurontrace::cli
