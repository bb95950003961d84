// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "cli/capture_view.h"
#include "cli/command.h"
#include "cli/export_file.h"
#include "cli/interrupt_watcher.h"
#include "cli/progress_line.h"
#include "cli/text.h"
#include "trace/event_filter.h"

namespace neurontrace::cli {
namespace {

// How long a capture in flight outlives an aggregator that does not answer, before the CLI gives up
// watching.
constexpr auto kReconnectFor = std::chrono::seconds(30);

struct CaptureOptions {
  std::string duration;
  std::string name;
  std::string job;
  std::vector<std::string> instances;
  std::vector<std::string> cores;
  std::vector<std::string> event_types;
  uint64_t ring_events = 0;
  bool no_framework = false;
  bool no_neuron = false;
  std::string path;
  std::string format;
  std::string id;  // of `capture stop`
};

void AddSelection(CLI::App& command, CaptureOptions& options) {
  command.add_option("--name", options.name, "A name to find the capture by");
  command.add_option("--job", options.job, "Only workers of this job");
  command
      .add_option("--system-trace-filter-instance-id,--instance", options.instances,
                  "Only these instances (comma-separated)")
      ->allow_extra_args(false);
  command
      .add_option("--system-trace-filter-neuron-core,--core", options.cores,
                  "Only these cores, by index inside the process: 0,2,4-7")
      ->allow_extra_args(false);
  command
      .add_option("--system-trace-filter-event-type,--event-type", options.event_types,
                  "Only these event types: names, hardware, software, ^name for all but")
      ->allow_extra_args(false);
  command.add_option("--ring-events", options.ring_events,
                     "Events that the runtime's ring of each core holds (default 65536)");
  command.add_flag("--no-framework", options.no_framework, "Leave framework trace files out");
  command.add_flag("--no-neuron", options.no_neuron, "Leave the Neuron Runtime's events out");
}

absl::StatusOr<v1::CaptureSpec> SpecOf(const CaptureOptions& options) {
  v1::CaptureSpec spec;
  spec.set_name(options.name);
  spec.set_job(options.job);
  for (const auto& id : SplitList(options.instances)) spec.add_instance_ids(id);
  for (const auto& text : SplitList(options.cores)) {
    const auto cores = ParseCoreList(text);
    if (!cores.ok()) return cores.status();
    for (const uint32_t core : *cores) spec.add_neuron_cores(core);
  }
  const std::vector<std::string> types = SplitList(options.event_types);
  if (const auto filter = EventFilter::Parse(types); !filter.ok()) return filter.status();
  for (const auto& type : types) spec.add_event_types(type);
  if (!options.duration.empty()) {
    const auto duration = ParseDuration(options.duration);
    if (!duration.ok()) return duration.status();
    spec.set_duration_ns(*duration);
  }
  spec.set_ring_events_per_core(options.ring_events);
  spec.set_include_neuron(!options.no_neuron);
  spec.set_include_framework(!options.no_framework);
  return spec;
}

grpc::Status Start(Context& context, const v1::CaptureSpec& spec, v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::StartCaptureRequest request;
  *request.mutable_spec() = spec;
  return context.stub().StartCapture(&call, request, &capture);
}

grpc::Status Stop(Context& context, const std::string& id, v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  return context.stub().StopCapture(&call, reference, &capture);
}

void Draw(ProgressLine& line, const v1::Capture& capture) {
  const uint64_t elapsed = capture.server_realtime_ns() > capture.started_realtime_ns()
                               ? capture.server_realtime_ns() - capture.started_realtime_ns()
                               : 0;
  const bool recording = capture.state() == v1::CAPTURE_STATE_RECORDING;
  const uint64_t duration = capture.spec().duration_ns();
  const double fraction = !recording ? 1
                          : duration == 0
                              ? -1
                              : static_cast<double>(elapsed) / static_cast<double>(duration);
  line.Draw(fraction,
            fmt::format("{} {}: {} workers, {} events stored, {} lost",
                        recording ? "recording" : "storing the rest", FormatDuration(elapsed),
                        capture.workers_size(), FormatCount(capture.events()),
                        FormatCount(capture.events_lost())));
}

// Follows the capture until it has ended, through restarts of the aggregator. The first interrupt
// stops the capture, the second stops watching it.
grpc::Status WatchUntilEnded(Context& context, v1::Capture& capture) {
  ProgressLine line(context.progress);
  v1::CaptureReference reference;
  reference.set_capture_id(capture.capture_id());
  std::mutex mutex;
  grpc::ClientContext* current = nullptr;
  bool abandoned = false;
  InterruptWatcher interrupts([&](int count) {
    if (count == 1) {
      v1::Capture stopped;
      if (const auto status = Stop(context, reference.capture_id(), stopped); status.ok()) return;
    }
    std::lock_guard lock(mutex);
    abandoned = true;
    if (current != nullptr) current->TryCancel();
  });
  auto give_up = std::chrono::steady_clock::now() + kReconnectFor;
  for (;;) {
    grpc::ClientContext call;
    call.set_wait_for_ready(true);
    {
      std::lock_guard lock(mutex);
      if (abandoned) break;
      current = &call;
    }
    const auto reader = context.stub().WatchCapture(&call, reference);
    while (reader->Read(&capture)) {
      give_up = std::chrono::steady_clock::now() + kReconnectFor;
      Draw(line, capture);
    }
    const grpc::Status status = reader->Finish();
    std::lock_guard lock(mutex);
    current = nullptr;
    if (abandoned) break;
    if (status.ok() && HasEnded(capture)) return status;
    const bool passing = status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (!passing || std::chrono::steady_clock::now() > give_up) return status;
  }
  return {grpc::StatusCode::CANCELLED,
          fmt::format("not watching any more; capture {} may still be running: neurontrace capture "
                      "stop {}",
                      reference.capture_id(), reference.capture_id())};
}

// The end of every capture: what came, the file if one was asked for, and an exit code that tells.
int Conclude(Context& context, const v1::Capture& watched, const CaptureOptions& options) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, watched.capture_id(), capture); !status.ok()) {
    return Fail(context, status);
  }
  const ExitCode code = ExitCodeOf(capture);
  FILE* out = options.path == "-" ? stderr : stdout;
  fmt::print(out, "{}", context.json ? FormatCaptureJson(capture) : FormatCapture(capture));
  if (options.path.empty() || code == kExitFailed) return code;
  const auto format = ExportFormatOf(options.format, options.path);
  if (!format.ok()) return Fail(format.status());
  v1::ExportRequest request;
  request.set_capture_id(capture.capture_id());
  request.set_format(*format);
  const int exported = ExportToFile(context, request, options.path);
  return exported == kExitDone ? code : exported;
}

int RunCapture(Context& context, const CaptureOptions& options, bool wait) {
  const auto spec = SpecOf(options);
  if (!spec.ok()) {
    Fail(spec.status());
    return kExitUsage;
  }
  v1::Capture capture;
  if (const auto status = Start(context, *spec, capture); !status.ok())
    return Fail(context, status);
  if (!wait) {
    fmt::print("{}", context.json ? FormatCaptureJson(capture) : capture.capture_id() + "\n");
    return kExitDone;
  }
  if (!context.json) {
    fmt::print(stderr, "capture {}{}\n", capture.capture_id(),
               spec->duration_ns() == 0 ? ": Ctrl-C stops it" : "");
  }
  if (const auto status = WatchUntilEnded(context, capture); !status.ok()) {
    return Fail(context, status);
  }
  return Conclude(context, capture, options);
}

int RunStop(Context& context, const CaptureOptions& options) {
  v1::Capture capture;
  if (const auto status = Stop(context, options.id, capture); !status.ok()) {
    return Fail(context, status);
  }
  if (const auto status = WatchUntilEnded(context, capture); !status.ok()) {
    return Fail(context, status);
  }
  return Conclude(context, capture, options);
}

void AddOutput(CLI::App& command, CaptureOptions& options) {
  command.add_option("-o,--out", options.path,
                     "Export to this file at the end (- for standard output)");
  command
      .add_option("--format", options.format,
                  "perfetto, json, events or summary-json (default: by the file's ending)")
      ->check(CLI::IsMember({"perfetto", "json", "events", "summary-json"}));
}

}  // namespace

void AddCaptureCommand(CLI::App& app, Context& context, Run& run) {
  auto options = std::make_shared<CaptureOptions>();
  CLI::App* command = app.add_subcommand(
      "capture", "Record all matching workers now, wait until everything is stored, say what came");
  command->footer(
      "Examples:\n"
      "  neurontrace capture --duration 30s -o trace.pftrace\n"
      "  neurontrace capture --duration 5s --event-type hardware,^cc_running --instance i-0f20\n"
      "  neurontrace capture            (until Ctrl-C)\n"
      "  ID=$(neurontrace capture start); …; neurontrace capture stop $ID -o trace.json\n\n"
      "Exit codes: 0 complete, 1 failed or no worker matched, 3 ended but something is missing.");
  command->require_subcommand(0, 1);
  command->add_option("-d,--duration", options->duration,
                      "How long, like 30s or 2m (default: until Ctrl-C)");
  AddSelection(*command, *options);
  AddOutput(*command, *options);
  CLI::App* start = command->add_subcommand("start", "Start a capture, print its id and return");
  start->add_option("-d,--duration", options->duration, "Stop by itself after this long");
  AddSelection(*start, *options);
  CLI::App* stop = command->add_subcommand("stop", "Stop a capture and wait until it is stored");
  stop->add_option("ID", options->id, "Capture id or the beginning of one")->required();
  AddOutput(*stop, *options);
  command->callback([&context, &run, start, stop, options] {
    if (stop->parsed()) {
      run = [&context, options] { return RunStop(context, *options); };
    } else {
      const bool wait = !start->parsed();
      run = [&context, options, wait] { return RunCapture(context, *options, wait); };
    }
  });
}

}  // namespace neurontrace::cli
