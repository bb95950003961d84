// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "cli/capture_view.h"
#include "cli/certificate_view.h"
#include "cli/command.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

int ListCaptures(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  if (const auto status = context.stub().ListCaptures(&call, {}, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    for (v1::Capture& capture : *reply.mutable_captures()) {
      for (v1::CaptureWorkerStatus& worker : *capture.mutable_workers()) worker.clear_capture_id();
    }
    fmt::print("{}", FormatJson(reply));
    return kExitDone;
  }
  if (reply.captures().empty()) {
    fmt::print("No capture yet. Make one: neurontrace capture --duration 5s -o trace.pftrace\n");
    return kExitDone;
  }
  std::vector<std::vector<std::string>> rows;
  for (const v1::Capture& capture : reply.captures()) {
    rows.push_back({capture.capture_id(),
                    capture.spec().name().empty() ? "-" : capture.spec().name(),
                    CaptureStateName(capture.state()), FormatTime(capture.started_realtime_ns()),
                    std::to_string(capture.workers_size()), FormatCount(capture.events()),
                    FormatCount(capture.events_lost()), FormatBytes(capture.bytes())});
  }
  fmt::print("{}", FormatTable(
                       {"CAPTURE", "NAME", "STATE", "STARTED", "WORKERS", "EVENTS", "LOST", "SIZE"},
                       rows));
  return kExitDone;
}

std::string FormatStreams(const v1::Capture& capture) {
  std::vector<std::vector<std::string>> rows;
  for (const v1::CaptureStream& stream : capture.streams()) {
    rows.push_back({std::to_string(stream.number()), stream.identity().worker().instance_id(),
                    std::to_string(stream.identity().worker().pid()), CoreName(stream.identity()),
                    stream.worker_gid() < 0 ? "unknown" : std::to_string(stream.worker_gid()),
                    FormatCount(stream.events()), FormatCount(stream.chunks()),
                    FormatBytes(stream.bytes()),
                    FormatDuration(stream.last_timestamp_ns() - stream.first_timestamp_ns())});
  }
  return FormatTable(
      {"STREAM", "INSTANCE", "PID", "SOURCE", "WORKER GID", "EVENTS", "CHUNKS", "SIZE", "SPAN"},
      rows);
}

int ShowCapture(Context& context, const std::string& id) {
  v1::Capture capture;
  if (const auto status = GetCapture(context, id, capture); !status.ok()) {
    return Fail(context, status);
  }
  const int code = capture.state() == v1::CAPTURE_STATE_INCOMPLETE ? kExitIncomplete : kExitDone;
  if (context.json) {
    fmt::print("{}", FormatCaptureJson(capture));
    return code;
  }
  if (!capture.streams().empty()) fmt::print("{}\n", FormatStreams(capture));
  fmt::print("{}", FormatCapture(capture));
  return code;
}

int DeleteCapture(Context& context, const std::string& id) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  v1::DeleteCaptureReply reply;
  if (const auto status = context.stub().DeleteCapture(&call, reference, &reply); !status.ok()) {
    return Fail(context, status);
  }
  if (context.json) {
    fmt::print("{}", FormatJson(reply));
  } else {
    fmt::print("deleted: {} chunks, {}\n", FormatCount(reply.chunks()), FormatBytes(reply.bytes()));
  }
  return kExitDone;
}

}  // namespace

void AddCapturesCommand(CLI::App& app, Context& context, Run& run) {
  auto id = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("captures", "List, show and delete what was recorded");
  command->footer(
      "Examples:\n  neurontrace captures\n  neurontrace captures show 01JD\n"
      "  neurontrace captures delete 01JD8Z2M6WQJ4V1T0S3R5XK7PA\n"
      "An id may be cut short as long as only one capture begins so.\n"
      "Exit code of show: 3 where the capture has ended incomplete.");
  command->require_subcommand(0, 1);
  CLI::App* list = command->add_subcommand("list", "All captures, newest last (the default)");
  CLI::App* show = command->add_subcommand(
      "show", "One capture: its streams, and what of each worker is there and what is missing");
  CLI::App* erase = command->add_subcommand("delete", "Delete a capture that has ended");
  show->add_option("ID", *id, "Capture id or the beginning of one")->required();
  erase->add_option("ID", *id, "Capture id or the beginning of one")->required();
  command->callback([&context, &run, list, show, erase, id] {
    if (show->parsed()) {
      run = [&context, id] { return ShowCapture(context, *id); };
    } else if (erase->parsed()) {
      run = [&context, id] { return DeleteCapture(context, *id); };
    } else {
      (void)list;
      run = [&context] { return ListCaptures(context); };
    }
  });
}

}  // namespace neurontrace::cli
