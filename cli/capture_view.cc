// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_view.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/capture_progress.h"
#include "cli/certificate_view.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// Of the table of workers: what is worse comes first.
constexpr size_t kOutcomesShown = 64;

std::string FormatHead(const v1::Capture& capture) {
  const v1::CaptureSpec& spec = capture.spec();
  const uint64_t end = capture.stopped_realtime_ns() != 0 ? capture.stopped_realtime_ns()
                                                          : capture.server_realtime_ns();
  const uint64_t begin = BeginOf(capture);
  std::string out = fmt::format("capture     {}{}{}\n", capture.capture_id(),
                                spec.name().empty() ? "" : "  ", spec.name());
  if (spec.mode() != v1::CAPTURE_MODE_STREAM) {
    out += fmt::format("mode        {}\n", CaptureModeName(spec.mode()));
  }
  if (const std::string selection = FormatSelection(spec); !selection.empty()) {
    out += fmt::format("workers     {}\n", selection);
  }
  if (!spec.cause().empty()) out += fmt::format("cause       {}\n", spec.cause());
  if (!spec.labels().empty()) out += fmt::format("tags        {}\n", FormatLabels(spec));
  if (capture.state() == v1::CAPTURE_STATE_NOT_BEGUN ||
      capture.state() == v1::CAPTURE_STATE_ARMING) {
    out += fmt::format("state       {}, asked for {}\n", CaptureStateName(capture.state()),
                       FormatTime(capture.started_realtime_ns()));
  } else {
    out += fmt::format("state       {}, {} from {}\n", CaptureStateName(capture.state()),
                       FormatDuration(end > begin ? end - begin : 0), FormatTime(begin));
  }
  const bool lost_unknown = capture.events_lost_unknown();
  const std::string lost = lost_unknown && capture.events_lost() == 0
                               ? "an unknown number"
                               : FormatLost(capture.events_lost(), lost_unknown);
  out += fmt::format("events      {} stored, {} lost, {} on disk\n", FormatCount(capture.events()),
                     lost, FormatBytes(capture.bytes()));
  if (capture.events_expired() != 0) {
    out += fmt::format("expired     {} events, deleted by the capture's retention\n",
                       FormatCount(capture.events_expired()));
  }
  if (capture.artifacts() != 0 || capture.artifacts_forgone() != 0) {
    out += fmt::format("artifacts   {} files of the vendor's profiler, {} kept for them",
                       FormatCount(capture.artifacts()), FormatBytes(capture.artifact_bytes()));
    if (capture.artifacts_forgone() != 0) {
      out += fmt::format("; {} not kept", FormatCount(capture.artifacts_forgone()));
    }
    out += '\n';
  }
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  return out;
}

// What keeps a worker from recording, and how to mend it, stands in its row of the table. Warnings
// and findings, which others read without the table, say it as well: once is enough.
v1::Capture WithDetailsToldOnce(v1::Capture capture) {
  if (static_cast<size_t>(capture.workers_size()) > kOutcomesShown) return capture;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (worker.detail().empty()) continue;
    const std::string told = ": " + worker.detail();
    for (auto* texts :
         {capture.mutable_warnings(), capture.mutable_certificate()->mutable_findings()}) {
      for (std::string& text : *texts) {
        if (text.ends_with(told)) text.resize(text.size() - told.size());
      }
    }
  }
  return capture;
}

}  // namespace

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
    case v1::WORKER_STATE_NO_TAP:
      return "no tap";
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
    case v1::CAPTURE_STATE_ARMING:
      return "arming";
    case v1::CAPTURE_STATE_NOT_BEGUN:
      return "not begun";
    default:
      return "unknown";
  }
}

std::string CaptureModeName(v1::CaptureMode mode) {
  switch (mode) {
    case v1::CAPTURE_MODE_STREAM:
      return "capture";
    case v1::CAPTURE_MODE_FLIGHT_RECORDER:
      return "flight recorder";
    case v1::CAPTURE_MODE_SNAPSHOT:
      return "snapshot";
    case v1::CAPTURE_MODE_CONTINUOUS:
      return "continuous";
    case v1::CAPTURE_MODE_PREVIEW:
      return "preview";
    default:
      return "unknown";
  }
}

std::string FormatLabels(const v1::CaptureSpec& spec) {
  std::string text;
  for (const v1::KeyValue& label : spec.labels()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", label.key(), label.value());
  }
  return text;
}

std::string FormatCapture(const v1::Capture& told, const WorkerRanks& ranks, CaptureDetail detail) {
  const v1::Capture capture = WithDetailsToldOnce(told);
  std::string out = FormatHead(capture);
  if (const std::string outcome = FormatOutcome(capture, ranks, kOutcomesShown); !outcome.empty()) {
    out += "\n" + outcome + FormatOutcomeSummary(capture);
  }
  if (capture.certificate().verdict().empty()) return out;
  // Of one that is complete there is nothing more to be said than that.
  const bool in_short =
      detail == CaptureDetail::kShort && capture.state() == v1::CAPTURE_STATE_COMPLETE;
  return out + "\n" +
         (in_short ? FormatVerdict(capture.certificate())
                   : FormatCertificate(capture.certificate()));
}

v1::Capture WithoutRawIds(v1::Capture capture) {
  for (v1::CaptureWorkerStatus& worker : *capture.mutable_workers()) worker.clear_capture_id();
  capture.mutable_spec()->clear_flight_recorder();
  return capture;
}

std::string FormatCaptureJson(const v1::Capture& capture) {
  return FormatJson(WithoutRawIds(capture));
}

bool HasEnded(const v1::Capture& capture) {
  return capture.state() == v1::CAPTURE_STATE_COMPLETE ||
         capture.state() == v1::CAPTURE_STATE_INCOMPLETE ||
         capture.state() == v1::CAPTURE_STATE_NOT_BEGUN;
}

ExitCode ExitCodeOf(const v1::Capture& capture) {
  if (capture.state() == v1::CAPTURE_STATE_NOT_BEGUN) return kExitFailed;
  if (capture.workers().empty() && capture.events() == 0) {
    // A standing capture is there for workers that come later.
    return HasEnded(capture) ? kExitFailed : kExitIncomplete;
  }
  if (capture.state() == v1::CAPTURE_STATE_INCOMPLETE) return kExitIncomplete;
  if (HasEnded(capture) && !capture.certificate().findings().empty()) return kExitIncomplete;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (IsLeftOut(worker) || FallsShort(worker, capture)) return kExitIncomplete;
  }
  return kExitDone;
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

grpc::Status StopCapture(Context& context, const std::string& id, v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::CaptureReference reference;
  reference.set_capture_id(id);
  return context.stub().StopCapture(&call, reference, &capture);
}

}  // namespace neurontrace::cli
