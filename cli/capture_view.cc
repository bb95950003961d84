// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "cli/capture_progress.h"
#include "cli/certificate_view.h"
#include "cli/folded_lines.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/text.h"

namespace neurontrace::cli {
namespace {

// The table of workers shows this many; the worst come first.
constexpr size_t kOutcomesShown = 64;

// Returns the duration and the begin: "2.0 s from 2026-11-26 20:55:59Z". A running capture lasts
// until the aggregator's current time.
std::string FormatLength(const v1::Capture& capture) {
  const uint64_t begin = BeginOf(capture);
  const uint64_t end = capture.stopped_realtime_ns() != 0 || HasEnded(capture)
                           ? capture.stopped_realtime_ns()
                           : capture.server_realtime_ns();
  if (begin == 0 || end == 0) return "duration unknown";
  const std::string length = end < capture.started_realtime_ns()
                                 ? "duration unknown"
                                 : FormatDuration(end > begin ? end - begin : 0);
  return fmt::format("{} from {}", length, FormatTime(begin));
}

// Returns the facts of the capture as lines with a label of twelve columns. Lines without a value
// are omitted.
std::string FormatHead(const v1::Capture& capture) {
  const v1::CaptureSpec& spec = capture.spec();
  std::string out = fmt::format("capture     {}{}{}\n", capture.capture_id(),
                                spec.name().empty() ? "" : "  ", spec.name());
  if (spec.mode() != v1::CAPTURE_MODE_STREAM) {
    out += fmt::format("mode        {}\n", CaptureModeName(spec.mode()));
  }
  if (const std::string selection = FormatSelection(spec); !selection.empty()) {
    out += fmt::format("workers     {}\n", selection);
  }
  if (!spec.cause().empty()) out += fmt::format("cause       {}\n", spec.cause());
  if (capture.starred()) out += "starred     yes\n";
  if (const std::string tags = FormatTags(capture); !tags.empty()) {
    out += fmt::format("tags        {}\n", tags);
  }
  // A capture that has not begun has no duration; the time of the request is the only one known.
  if (capture.state() == v1::CAPTURE_STATE_NOT_BEGUN ||
      capture.state() == v1::CAPTURE_STATE_ARMING) {
    out += fmt::format("state       {}, asked for {}\n", CaptureStateName(capture.state()),
                       FormatTime(capture.started_realtime_ns()));
  } else {
    out += fmt::format("state       {}, {}\n", CaptureStateName(capture.state()),
                       FormatLength(capture));
  }
  // A loss of unknown size is not shown as 0.
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
    out += fmt::format("artifacts   {} files of the vendor's profiler, {} stored",
                       FormatCount(capture.artifacts()), FormatBytes(capture.artifact_bytes()));
    if (capture.artifacts_forgone() != 0) {
      out += fmt::format("; {} not kept", FormatCount(capture.artifacts_forgone()));
    }
    out += '\n';
  }
  return out;
}

// Returns the warnings, similar ones folded unless `wide`.
std::string FormatWarnings(const v1::Capture& capture, bool wide) {
  FoldedLines lines(NamesIn(capture.certificate()), !wide);
  if (capture.has_store_problem()) {
    lines.Add("warning: " + DescribeStoreProblem(capture.store_problem()));
  }
  for (const std::string& warning : capture.warnings()) lines.Add("warning: " + warning);
  return lines.Format();
}

// Returns the part of a capture that concerns one job: its workers, its certificate, and the
// warnings that do not name only other jobs.
v1::Capture CaptureOfJob(const v1::Capture& capture, const std::string& job) {
  v1::Capture part = capture;
  *part.mutable_certificate() = ForJob(capture.certificate(), job);
  WorkerRanks jobs;
  jobs.Take(part);
  auto& workers = *part.mutable_workers();
  workers.erase(std::remove_if(workers.begin(), workers.end(),
                               [&jobs](const v1::CaptureWorkerStatus& worker) {
                                 return worker.framework() || !jobs.Knows(worker.worker());
                               }),
                workers.end());
  part.clear_warnings();
  const SelectOtherJobs others(capture.certificate(), job);
  for (const std::string& warning : capture.warnings()) {
    if (!others.Own(warning)) part.add_warnings(warning);
  }
  return part;
}

// Returns whether the certificate's line contains everything about this worker.
bool IsPlain(const v1::CaptureWorkerStatus& worker, const v1::Capture& capture) {
  return !IsLeftOut(worker) && !FallsShort(worker, capture) && !worker.joined_late() &&
         worker.detail().empty();
}

// Removes workers with nothing beyond their certificate's line. Keeps all while the capture runs,
// and for snapshots and captures of executions, where the outcome shows what each worker delivered.
v1::Capture WithoutPlainWorkers(v1::Capture capture) {
  const bool by_mode =
      capture.spec().mode() == v1::CAPTURE_MODE_SNAPSHOT || capture.begin().first_execution() != 0;
  if (!HasEnded(capture) || by_mode) return capture;
  v1::Capture rest = capture;
  auto& workers = *rest.mutable_workers();
  workers.erase(std::remove_if(workers.begin(), workers.end(),
                               [&capture](const v1::CaptureWorkerStatus& worker) {
                                 return IsPlain(worker, capture);
                               }),
                workers.end());
  return rest;
}

// Removes from warnings and findings the detail that the worker's row of the table repeats. Texts
// stay whole if the table is too long to show every row.
v1::Capture WithoutRepeatedDetails(v1::Capture capture) {
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

std::string DescribeStoreProblem(const v1::StoreProblem& problem) {
  std::string text = fmt::format("the aggregator's store has taken no data since {}: {}",
                                 FormatTime(problem.since_realtime_ns()), problem.text());
  if (problem.has_free_bytes()) {
    text += fmt::format("; {} free on its disk", FormatBytes(problem.free_bytes()));
  }
  text += "; agents keep their data and send it again";
  if (problem.lacks_room()) text += ", which succeeds once there is room";
  return text;
}

std::string WorkerStateName(v1::WorkerState state) {
  switch (state) {
    case v1::WORKER_STATE_NOT_INITIALISED:
      return "not initialised";
    case v1::WORKER_STATE_IDLE:
      return "ready";
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

std::vector<std::string> TagsOf(const v1::Capture& capture) {
  std::vector<std::string> tags;
  for (const v1::KeyValue& label : capture.spec().labels()) {
    tags.push_back(fmt::format("{}={}", label.key(), label.value()));
  }
  tags.insert(tags.end(), capture.tags().begin(), capture.tags().end());
  return tags;
}

std::string FormatTags(const v1::Capture& capture) {
  return fmt::format("{}", fmt::join(TagsOf(capture), ", "));
}

std::string FormatCapture(const v1::Capture& whole, const WorkerRanks& ranks, CaptureDetail detail,
                          const CertificateView& view) {
  // The selection comes first: everything below describes only the chosen job.
  const v1::Capture told = view.job.empty() ? whole : CaptureOfJob(whole, view.job);
  const bool is_whole = detail == CaptureDetail::kWhole;
  const bool has_lines = is_whole && told.certificate().workers_size() > 0 && !view.wide;
  // The outcome is omitted where the certificate's lines answer the same question.
  const bool is_selected = !view.job.empty() || !view.state.empty();
  const bool shows_outcome = !view.brief && !(has_lines && is_selected);
  const v1::Capture capture = shows_outcome ? WithoutRepeatedDetails(told) : told;
  std::string out = FormatHead(capture) + FormatWarnings(capture, view.wide);
  if (is_whole) {
    const std::string jobs =
        FormatJobRanks(capture.certificate().jobs(), /*with_events=*/true, view.columns);
    if (!jobs.empty()) out += "\n" + jobs;
  }
  if (!capture.workers().empty()) {
    if (shows_outcome) {
      out += "\n" + FormatOutcome(has_lines ? WithoutPlainWorkers(capture) : capture, ranks,
                                  view.wide ? SIZE_MAX : kOutcomesShown, view.columns);
    }
    out += FormatOutcomeSummary(capture);
    if (!view.brief) {
      out += FormatFrameworkTraces(capture, view.wide ? SIZE_MAX : kOutcomesShown, view.columns);
    }
  }
  if (capture.certificate().verdict().empty()) return out;
  // The verdict alone suffices for a complete capture.
  const bool in_short = !is_whole && capture.state() == v1::CAPTURE_STATE_COMPLETE;
  return out + "\n" +
         (in_short ? FormatVerdict(capture.certificate(), view.wide)
                   : FormatCertificate(capture.certificate(), view));
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
  // A capture without workers fails, unless it has stored events of framework files.
  if (capture.workers().empty() && capture.events() == 0) {
    // Workers that start later join a standing capture, so a running one has not failed yet.
    return HasEnded(capture) ? kExitFailed : kExitIncomplete;
  }
  if (capture.state() == v1::CAPTURE_STATE_INCOMPLETE) return kExitIncomplete;
  // Findings make a capture incomplete even if every worker reached its goal.
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
