// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "base/status.h"
#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/text.h"
#include "trace/event_filter.h"

namespace neurontrace::cli {
namespace {

struct ExportOptions {
  std::string id;
  std::string format;
  std::string path;
  std::vector<std::string> instances;
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  std::vector<std::string> primary_group;
  std::vector<std::string> secondary_group;
  std::string from;
  std::string to;
  std::string clock = "aligned";
  bool clock_arguments = false;
};

struct WindowEdge {
  uint64_t ns = 0;  // 0: open
  bool is_relative = false;
};

// A time is an epoch in ns (16 digits or more) or a duration since the capture's first event.
absl::StatusOr<WindowEdge> ParseTime(const std::string& text) {
  if (text.empty()) return WindowEdge();
  if (text.size() >= 16 && text.find_first_not_of("0123456789") == std::string::npos) {
    if (text.size() > 19) return InvalidArgument("{} is too large for a time in ns", text);
    return WindowEdge{std::stoull(text), false};
  }
  ASSIGN_OR_RETURN(const uint64_t offset_ns, ParseDuration(text));
  return WindowEdge{offset_ns, true};
}

absl::StatusOr<v1::ExportRequest> RequestOf(const ExportOptions& options,
                                            const v1::Capture& capture) {
  v1::ExportRequest request;
  request.set_capture_id(capture.capture_id());
  ASSIGN_OR_RETURN(const v1::ExportFormat format, ExportFormatOf(options.format, options.path));
  request.set_format(format);
  for (const auto& id : SplitList(options.instances)) request.add_instance_ids(id);
  for (const auto& text : SplitList(options.cores)) {
    ASSIGN_OR_RETURN(const std::vector<uint32_t> cores, ParseCoreList(text));
    for (const uint32_t core : cores) request.add_neuron_cores(core);
  }
  const std::vector<std::string> types = SplitList(options.event_types);
  RETURN_IF_ERROR(EventFilter::Parse(types).status());
  for (const auto& type : types) request.add_event_types(type);
  for (const auto& field : SplitList(options.primary_group)) request.add_primary_group(field);
  for (const auto& field : SplitList(options.secondary_group)) request.add_secondary_group(field);
  ASSIGN_OR_RETURN(const WindowEdge from, ParseTime(options.from));
  ASSIGN_OR_RETURN(const WindowEdge to, ParseTime(options.to));
  if (to.ns != 0 && from.is_relative == to.is_relative && to.ns <= from.ns) {
    return InvalidArgument("--to must lie after --from");
  }
  request.set_raw_clocks(options.clock == "raw");
  request.set_clock_arguments(options.clock_arguments);
  request.set_window_start_ns(from.ns);
  request.set_window_start_is_relative(from.is_relative);
  request.set_window_end_ns(to.ns);
  request.set_window_end_is_relative(to.is_relative);
  return request;
}

int RunExport(Context& context, const ExportOptions& options) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, options.id, capture); !status.ok()) {
    return Fail(context, status);
  }
  const auto request = RequestOf(options, capture);
  if (!request.ok()) {
    Fail(request.status());
    return kExitUsage;
  }
  const std::string path = options.path.empty() ? DefaultFileName(request->format()) : options.path;
  const int code = ExportToFile(context, *request, path);
  if ((code == kExitDone || code == kExitIncomplete) &&
      request->format() == v1::EXPORT_FORMAT_PERFETTO && path != "-" && !context.json) {
    fmt::print("Open it at https://ui.perfetto.dev (the file stays on this machine).\n");
  }
  return code;
}

}  // namespace

void AddExportCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a capture as a file that people open");
  command->add_option("ID", options->id, "Capture id or the beginning of one")->required();
  command
      ->add_option("--format", options->format,
                   "perfetto, json, events or summary-json (default: by the file's ending)")
      ->check(CLI::IsMember({"perfetto", "json", "events", "summary-json"}));
  command->add_option("-o,--out", options->path,
                      "File to write (default system_profile.pftrace, system_profile.json, "
                      "events.jsonl or summary.json; - for standard output)");
  command
      ->add_option("--system-trace-filter-instance-id,--instance", options->instances,
                   "Only these instances (comma-separated)")
      ->allow_extra_args(false);
  command
      ->add_option("--system-trace-filter-neuron-core,--core", options->cores,
                   "Only these cores, by index inside the process: 0,2,4-7")
      ->allow_extra_args(false);
  command
      ->add_option("--system-trace-filter-event-type,--event-type", options->event_types,
                   "Only these event types: names, hardware, software, ^name for all but")
      ->allow_extra_args(false);
  command
      ->add_option("--system-trace-primary-group", options->primary_group,
                   "What makes a process row: instance_id, process_id, thread_id, lnc_idx")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--system-trace-secondary-group", options->secondary_group,
          "What makes a thread row: worker_gid, lnc_idx, thread_id, instance_id, process_id")
      ->allow_extra_args(false);
  command->add_option("--from", options->from,
                      "Start of the window: since the first event (1.5s), or an epoch in ns");
  command->add_option("--to", options->to, "End of the window, likewise");
  command
      ->add_option("--clock", options->clock,
                   "aligned: on the reference timeline; raw: each instance's own stamps")
      ->check(CLI::IsMember({"aligned", "raw"}));
  command->add_flag("--clock-arguments", options->clock_arguments,
                    "Raw stamp and bound (eps_ns) beside every event");
  command->footer(
      "Examples:\n"
      "  neurontrace export 01JD -o trace.pftrace\n"
      "  neurontrace export 01JD --format json --event-type hardware -o hardware.json\n"
      "  neurontrace export 01JD --from 1s --to 1.5s --instance i-0f20,i-0f21 -o window.pftrace\n"
      "  neurontrace export 01JD --format summary-json -o summary.json\n\n"
      "Exit codes: 0 written, 1 failed, 3 written, but the capture is incomplete.");
  command->callback([&context, &run, options] {
    run = [&context, options] { return RunExport(context, *options); };
  });
}

}  // namespace neurontrace::cli
