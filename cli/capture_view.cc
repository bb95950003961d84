// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <tuple>
#include <utility>

#include "cli/text.h"
#include "trace/loss.h"

namespace neurontrace::cli {
namespace {

std::string WorkerName(const v1::CaptureWorkerStatus& worker) {
  if (worker.framework()) return fmt::format("{} framework files", worker.worker().instance_id());
  return fmt::format("{} pid {}", worker.worker().instance_id(), worker.worker().pid());
}

std::string CaptureWorkerStateName(v1::CaptureWorkerState state) {
  switch (state) {
    case v1::CAPTURE_WORKER_STATE_STARTING:
      return "starting";
    case v1::CAPTURE_WORKER_STATE_RECORDING:
      return "recording";
    case v1::CAPTURE_WORKER_STATE_STOPPING:
      return "stopping";
    case v1::CAPTURE_WORKER_STATE_COMPLETE:
      return "complete";
    case v1::CAPTURE_WORKER_STATE_REFUSED:
      return "refused";
    case v1::CAPTURE_WORKER_STATE_LOST:
      return "lost";
    default:
      return "unknown";
  }
}

std::string FormatWorkers(const v1::Capture& capture) {
  std::vector<v1::CaptureWorkerStatus> workers(capture.workers().begin(), capture.workers().end());
  std::sort(workers.begin(), workers.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.worker().instance_id(), a.framework(), a.worker().pid()) <
           std::tuple(b.worker().instance_id(), b.framework(), b.worker().pid());
  });
  std::vector<std::vector<std::string>> rows;
  for (const v1::CaptureWorkerStatus& worker : workers) {
    rows.push_back({WorkerName(worker), CaptureWorkerStateName(worker.state()),
                    std::to_string(worker.streams()), FormatCount(worker.events_read()),
                    FormatCount(worker.events_stored()), FormatCount(worker.events_lost()),
                    worker.detail().empty() ? "-" : worker.detail()});
  }
  return FormatTable({"WORKER", "OUTCOME", "STREAMS", "READ", "STORED", "LOST", "DETAIL"}, rows);
}

std::string FormatLosses(const v1::Capture& capture) {
  std::map<std::pair<int, int>, std::pair<uint64_t, bool>> sums;
  for (const v1::CaptureStream& stream : capture.streams()) {
    for (const v1::Loss& loss : stream.losses()) {
      auto& [events, unknown] = sums[{loss.place(), loss.reason()}];
      events += loss.events();
      unknown = unknown || loss.events_unknown();
    }
  }
  std::string out;
  for (const auto& [where, sum] : sums) {
    out += fmt::format("lost        {} events{} in the {}: {}\n", FormatCount(sum.first),
                       sum.second ? " and an unknown number more" : "",
                       ToString(static_cast<LossPlace>(where.first)),
                       ToString(static_cast<LossReason>(where.second)));
  }
  return out;
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
  out += FormatLosses(capture);
  if (!capture.workers().empty()) out += "\n" + FormatWorkers(capture);
  for (const std::string& warning : capture.warnings()) out += "warning: " + warning + "\n";
  return out;
}

std::string FormatCaptureJson(const v1::Capture& capture) {
  v1::Capture copy = capture;
  for (v1::CaptureWorkerStatus& worker : *copy.mutable_workers()) worker.clear_capture_id();
  return FormatJson(copy);
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
