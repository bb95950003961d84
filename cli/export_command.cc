// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/open_instructions.h"
#include "cli/quantity.h"
#include "cli/selection_view.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "cli/time_window.h"
#include "lib/base/status.h"
#include "lib/wire/export_options.h"

namespace neurontrace::cli {
namespace {

// Values of the options as typed; RequestOf parses them. ParseEnds moves values of `to` to
// `window_end` or `destination`.
struct ExportOptions {
  std::string id;
  bool continuous = false;
  std::string job;
  std::vector<std::string> formats;
  std::string path;
  std::vector<std::string> instances;
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  std::vector<std::string> primary_group;
  std::vector<std::string> secondary_group;
  std::string from;
  std::vector<std::string> to;  // as typed
  std::string window_end;
  std::string destination;
  std::vector<std::string> worker_gids;
  bool no_flows = false;
  std::string compression;
  std::string max_size;
  std::string split = "time";
  std::string clock = "aligned";
  bool clock_arguments = false;
  bool no_resume = false;
};

// Sets the window.
absl::Status SetWindow(const ExportOptions& options, v1::ExportRequest& request) {
  ASSIGN_OR_RETURN(const TimeWindow window, ParseTimeWindow(options.from, options.window_end));
  request.set_window_start_ns(window.start_ns);
  request.set_window_start_is_relative(window.start_is_relative);
  request.set_window_end_ns(window.end_ns);
  request.set_window_end_is_relative(window.end_is_relative);
  request.set_window_is_before_now(window.is_before_now);
  return absl::OkStatus();
}

// Sets compression and division into parts. A path that ends with .gz asks for gzip unless
// --compress was given.
absl::Status SetFile(const ExportOptions& options, v1::ExportRequest& request) {
  request.set_no_flows(options.no_flows);
  const bool is_named_gzip = options.compression.empty() && NamesGzip(options.path);
  if (options.compression == "gzip" || is_named_gzip) {
    request.set_compression(v1::EXPORT_COMPRESSION_GZIP);
  }
  if (options.compression == "packets") request.set_compression(v1::EXPORT_COMPRESSION_PACKETS);
  if (!options.max_size.empty()) {
    ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(options.max_size));
    request.set_max_file_bytes(bytes);
  }
  request.set_split_by_worker(options.split == "worker");
  if (options.max_size.empty() && request.split_by_worker()) {
    return InvalidArgument("--split requires --max-size, which sets the size of a part");
  }
  return absl::OkStatus();
}

// Returns the request without its capture. Fails with INVALID_ARGUMENT for values that are
// malformed or exclude each other. Makes no call.
absl::StatusOr<v1::ExportRequest> RequestOf(const ExportOptions& options) {
  v1::ExportRequest request;
  const std::string first = options.formats.empty() ? "" : options.formats.front();
  ASSIGN_OR_RETURN(const v1::ExportFormat format, ExportFormatOf(first, options.path));
  request.set_format(format);
  for (size_t i = 1; i < options.formats.size(); ++i) {
    ASSIGN_OR_RETURN(const v1::ExportFormat more, ExportFormatOf(options.formats[i], ""));
    // A file has one format; only a destination of the aggregator has room for several.
    request.add_more_formats(more);
  }
  if (request.more_formats_size() != 0 && options.destination.empty()) {
    return InvalidArgument("several formats need --to DIRECTORY, where the aggregator writes them");
  }
  // With --continuous it has selected the capture, by any of the job's names.
  if (!options.continuous) request.set_job(options.job);
  for (const auto& id : SplitList(options.instances)) request.add_instance_ids(id);
  ASSIGN_OR_RETURN(const std::vector<uint32_t> cores, CoresOf(options.cores));
  for (const uint32_t core : cores) request.add_neuron_cores(core);
  ASSIGN_OR_RETURN(const std::vector<std::string> types, EventTypesOf(options.event_types, false));
  for (const auto& type : types) request.add_event_types(type);
  for (const auto& field : SplitList(options.primary_group)) request.add_primary_group(field);
  for (const auto& field : SplitList(options.secondary_group)) request.add_secondary_group(field);
  for (const std::string& text : options.worker_gids) {
    ASSIGN_OR_RETURN(const std::vector<v1::GidRange> ranges, ParseGidRanges(text));
    for (const v1::GidRange& range : ranges) *request.add_worker_gids() = range;
  }
  RETURN_IF_ERROR(SetWindow(options, request));
  RETURN_IF_ERROR(SetFile(options, request));
  request.set_raw_clocks(options.clock == "raw");
  request.set_clock_arguments(options.clock_arguments);
  RETURN_IF_ERROR(CheckExportOptions(request));
  return request;
}

// Checks that exactly one of the ways to select a capture was used.
absl::Status CheckSelection(const ExportOptions& options) {
  if (options.continuous && !options.id.empty()) {
    return InvalidArgument(
        "--continuous selects the newest running continuous capture; omit {} or --continuous",
        options.id);
  }
  if (!options.continuous && options.id.empty()) {
    return InvalidArgument(
        "no capture given; pass its ID, or --continuous for the newest continuous one (neurontrace "
        "captures lists them)");
  }
  return absl::OkStatus();
}

// Finds the newest running continuous capture, of all jobs if none is named. Returns kExitDone and
// sets `found`, or prints the reason and returns another code.
int FindContinuous(Context& context, const ExportOptions& options, v1::Capture& found) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  if (const auto status = context.stub().ListCaptures(&call, {}, &reply); !status.ok()) {
    return Fail(context, status);
  }
  std::string others;
  for (const v1::Capture& capture : reply.captures()) {
    const v1::CaptureSpec& spec = capture.spec();
    if (spec.mode() != v1::CAPTURE_MODE_CONTINUOUS || HasEnded(capture)) continue;
    // A capture of all jobs contains the named one.
    if (options.job.empty() || IsOfEveryJob(spec) || NamesJob(spec, options.job)) {
      if (capture.started_realtime_ns() >= found.started_realtime_ns()) found = capture;
    } else {
      others += fmt::format("{}{}", others.empty() ? "" : ", ", FormatSelection(spec));
    }
  }
  if (!found.capture_id().empty()) return kExitDone;
  return Fail(
      NotFound("no continuous capture is running{}{}; start one with neurontrace capture "
               "--continuous --keep 10m",
               options.job.empty() ? "" : " for job " + options.job,
               others.empty() ? "" : " (there is one for " + others + ")"));
}

// Returns the format's usual name; for parts the name of their directory, with gzip its ending.
std::string DefaultPath(const v1::ExportRequest& request) {
  std::string path(ExportFormatInfoOf(request.format()).default_path);
  if (request.max_file_bytes() != 0 && !TraitsOf(request.format())->is_directory()) {
    path.resize(path.find('.'));  // a directory of its parts
  } else if (request.compression() == v1::EXPORT_COMPRESSION_GZIP) {
    path += kGzipEnding;
  }
  return path;
}

// Divides the values of --to into the end of the window and the destination of the aggregator. A
// destination begins with / or s3://, and no time does.
absl::Status ParseEnds(ExportOptions& options) {
  for (const std::string& text : options.to) {
    const bool is_destination = text.starts_with('/') || text.starts_with("s3://");
    std::string& taken = is_destination ? options.destination : options.window_end;
    if (!taken.empty()) {
      return InvalidArgument("--to {} and --to {}: only one {} is allowed", taken, text,
                             is_destination ? "destination" : "end of the window");
    }
    taken = text;
  }
  if (!options.destination.empty() && !options.path.empty()) {
    return InvalidArgument("--to {} makes the aggregator write the file; omit -o {} or --to",
                           options.destination, options.path);
  }
  return absl::OkStatus();
}

// Checks the options, finds the capture and runs the export. Interrupts end the program at once
// until there is something to clean up.
int RunExport(Context& context, ExportOptions options) {
  if (const auto status = CheckSelection(options); !status.ok()) return FailUsage(status);
  if (const auto status = ParseEnds(options); !status.ok()) return FailUsage(status);
  // Typed options are checked before any call, so that wrong usage does not depend on the
  // aggregator.
  auto request = RequestOf(options);
  if (!request.ok()) return FailUsage(request.status());
  InterruptWatcher interrupts(EndAtOnce);
  v1::Capture capture;
  if (options.continuous) {
    if (const int code = FindContinuous(context, options, capture); code != kExitDone) return code;
  } else if (const auto status = GetCapture(context, options.id, capture); !status.ok()) {
    return Fail(context, status);
  }
  request->set_capture_id(capture.capture_id());
  if (!options.destination.empty()) {
    request->set_destination(options.destination);
    const int code = ExportToDestination(context, *request, &interrupts);
    PrintOpenInstructions(context, code, *request, "");
    return code;
  }
  const std::string path = options.path.empty() ? DefaultPath(*request) : options.path;
  const PartialFiles partial_files =
      options.no_resume ? PartialFiles::kRestart : PartialFiles::kResume;
  const int code = ExportToFile(context, *request, {path, &interrupts, partial_files});
  PrintOpenInstructions(context, code, *request, path);
  return code;
}

// Adds the options that determine the form of the file but not its events.
void AddLayoutOptions(CLI::App& command, ExportOptions& options) {
  command
      .add_option("--clock", options.clock,
                  "aligned: times on the reference timeline; raw: each instance's own timestamps")
      ->check(CLI::IsMember({"aligned", "raw"}));
  command.add_flag("--clock-arguments", options.clock_arguments,
                   "Add the raw timestamp and the bound (eps_ns) to every event");
  command.add_flag("--no-flows", options.no_flows, "Omit arrows between related events");
  command
      .add_option(
          "--compress", options.compression,
          "none; gzip: the whole file (also if -o ends with .gz); packets: within a pftrace")
      ->check(CLI::IsMember({"none", "gzip", "packets"}));
  command
      .add_option(
          "--max-size", options.max_size,
          "Split into parts of about this size in a directory (200MB; perfetto: at least 1MiB)")
      ->check(NotEmpty("omit it for one file"));
  command
      .add_option("--split", options.split,
                  "With --max-size: split by time, or by ranges of workers (worker)")
      ->check(CLI::IsMember({"time", "worker"}));
  command.add_flag(
      "--no-resume", options.no_resume,
      "Start over instead of resuming an interrupted export, and keep no partial files");
}

}  // namespace

void AddExportCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Export a capture to a file for a trace viewer or for analysis");
  command->add_option("ID", options->id, "Capture id, or a unique prefix of one");
  command->add_flag("--continuous", options->continuous,
                    "Export the newest running continuous capture, instead of an ID");
  command
      ->add_option("--job", options->job,
                   "Only workers of this job; with --continuous: only a capture of this job")
      ->check(NotEmpty("omit it for all jobs"));
  AddFormats(*command, options->formats);
  command
      ->add_option("-o,--out", options->path,
                   "Output file, or a new directory for formats of several files (default: "
                   "system_profile.pftrace or the format's usual name; - for standard output)")
      ->check(NotEmpty("omit it for the default name"));
  AddInstances(*command, options->instances);
  command
      ->add_option("--worker-gid", options->worker_gids, "Only workers with these ranks (0-7,64)")
      ->allow_extra_args(false)
      ->check(NotEmpty("omit it for all workers"));
  AddCores(*command, options->cores);
  AddEventTypes(*command, options->event_types);
  command
      ->add_option("--system-trace-primary-group", options->primary_group,
                   "Key of a process row: instance_id, process_id, thread_id, lnc_idx")
      ->allow_extra_args(false);
  command
      ->add_option("--system-trace-secondary-group", options->secondary_group,
                   "Key of a thread row: worker_gid, lnc_idx, thread_id, instance_id, process_id")
      ->allow_extra_args(false);
  command
      ->add_option("--from", options->from,
                   "Start of the window: after the first event (1.5s), before now (-5m), or epoch "
                   "nanoseconds")
      ->check(NotEmpty("omit it to start with the first event"));
  command
      ->add_option("--to", options->to,
                   "End of the window, in the form of --from, or now. A value that starts with / "
                   "or s3:// is the destination to which the aggregator writes, below one of its "
                   "export roots. Both may be given")
      ->allow_extra_args(false)
      ->check(NotEmpty("omit it to end with the last event"));
  AddLayoutOptions(*command, *options);
  command->footer(
      "Examples:\n"
      "  neurontrace export 01JD -o trace.pftrace\n"
      "  neurontrace export 01JD --format json --event-type hardware -o hardware.json\n"
      "  neurontrace export 01JD --from 1s --to 1.5s --instance i-0f20,i-0f21 -o window.pftrace\n"
      "  neurontrace export 01JD --format summary-json -o summary.json\n"
      "  neurontrace export 01JD --to /fsx/traces/run7 --format perfetto --format json\n"
      "  neurontrace export --continuous --from -5m --to now -o last5.pftrace\n\n"
      "Exit codes: 0 written, 1 failed, 2 wrong usage, 3 written, but the capture is incomplete.");
  command->callback([&context, &run, options] {
    run = [&context, options] { return RunExport(context, *options); };
  });
}

}  // namespace neurontrace::cli
