// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_view.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/certificate_view.h"
#include "cli/text.h"

namespace neurontrace::cli {

std::string WorkerStateName(v1::WorkerState state) {
  switch (state) {
    case v1::WORKER_STATE_NOT_INITIALISED:
      return "not initialised";
    case v1::WORKER_STATE_IDLE:
      return "idle";
    case v1::WORKER_STATE_STREAMING:
      return "streaming";
    case v1::WORKER_STATE_BUSY_OTHER_PROFILER:
      return "busy: other profiler";
    case v1::WORKER_STATE_RUNTIME_TOO_OLD:
      return "runtime too old";
    case v1::WORKER_STATE_CLOSED:
      return "closed";
    case v1::WORKER_STATE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

std::string CaptureStateName(v1::CaptureState state) {
  switch (state) {
    case v1::CAPTURE_STATE_RECORDING:
      return "recording";
    case v1::CAPTURE_STATE_STOPPING:
      return "stopping";
    case v1::CAPTURE_STATE_COMPLETE:
      return "complete";
    case v1::CAPTURE_STATE_INCOMPLETE:
      return "incomplete";
    default:
      return "unknown";
  }
}

std::string FormatCapture(const v1::Capture& capture) {
  const uint64_t end = capture.stopped_realtime_ns() != 0 ? capture.stopped_realtime_ns()
                                                          : capture.server_realtime_ns();
  std::string out = fmt::format(
      "capture     {}{}{}\n"
      "state       {}, {} from {}\n"
      "events      {} stored, {} lost, {} on disk\n",
      capture.capture_id(), capture.spec().name().empty() ? "" : "  ", capture.spec().name(),
      CaptureStateName(capture.state()),
      FormatDuration(end > capture.started_realtime_ns() ? end - capture.started_realtime_ns() : 0),
      FormatTime(capture.started_realtime_ns()), FormatCount(capture.events()),
      FormatCount(capture.events_lost()), FormatBytes(capture.bytes()));
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  if (!capture.certificate().verdict().empty()) {
    out += "\n" + FormatCertificate(capture.certificate());
  }
  return out;
}

std::string FormatCaptureJson(const v1::Capture& capture) {
  v1::Capture copy = capture;
  for (v1::CaptureWorkerStatus& worker : *copy.mutable_workers()) worker.clear_capture_id();
  return FormatJson(copy);
}

bool HasEnded(const v1::Capture& capture) {
  return capture.state() == v1::CAPTURE_STATE_COMPLETE ||
         capture.state() == v1::CAPTURE_STATE_INCOMPLETE;
}

ExitCode ExitCodeOf(const v1::Capture& capture) {
  if (capture.workers().empty() && capture.events() == 0) return kExitFailed;
  return capture.state() == v1::CAPTURE_STATE_INCOMPLETE ? kExitIncomplete : kExitDone;
}

void SetDeadline(grpc::ClientContext& call, const Context& context) {
  call.set_deadline(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(context.connect_timeout_ms));
  call.set_wait_for_ready(
      true);  // a server that is just starting is waited for, until the deadline
}

grpc::Status GetCapture(Context& context, const std::string& id, v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  return context.stub().GetCapture(&call, reference, &capture);
}

}  // namespace neurontrace::cli
