// SPDX-License-Identifier: Apache-2.0
#include "cli/standing_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/capture_view.h"
#include "cli/capture_watch.h"
#include "cli/outcome_view.h"
#include "cli/selection_view.h"
#include "cli/shared_options.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

bool IsOfKind(const v1::CaptureSpec& spec, const StandingKind& kind) {
  return spec.mode() == kind.mode && spec.watch() == kind.is_watch;
}

// Returns the id of the capture to turn off: that of this job alone, or the only one. Fails with
// NOT_FOUND if there is none, INVALID_ARGUMENT if there are several.
absl::StatusOr<std::string> ChooseStanding(const v1::ListCapturesReply& running,
                                           const StandingKind& kind, const std::string& job) {
  std::vector<std::string> of_job;
  std::string named;
  for (const v1::Capture& capture : running.captures()) {
    const v1::CaptureSpec& spec = capture.spec();
    if (job.empty() || NamesJob(spec, job)) of_job.push_back(capture.capture_id());
    named += fmt::format("\n  {}  {}", capture.capture_id(),
                         IsOfEveryJob(spec) ? "all jobs" : FormatSelection(spec));
  }
  if (of_job.size() == 1) return of_job.front();
  if (running.captures().empty()) return NotFound("no {} is on", kind.noun);
  if (of_job.empty()) {
    return NotFound("no {} covers only job {}; to turn one of these off, pass its id:{}", kind.noun,
                    job, named);
  }
  return InvalidArgument("{} {}{} are on; select one with --job or its id:{}",
                         running.captures_size(), kind.noun, kind.is_watch ? "es" : "s", named);
}

}  // namespace

grpc::Status ListStanding(Context& context, const StandingKind& kind, const std::string& job,
                          v1::ListCapturesReply& found) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListCapturesReply reply;
  const grpc::Status status = context.stub().ListCaptures(&call, {}, &reply);
  for (const v1::Capture& capture : reply.captures()) {
    const v1::CaptureSpec& spec = capture.spec();
    const bool is_of_job = job.empty() || FormatJobs(spec).empty() || NamesJob(spec, job);
    const bool is_on = IsOfKind(spec, kind) && !HasEnded(capture);
    if (is_on && is_of_job) *found.add_captures() = WithoutRawIds(capture);
  }
  return status;
}

void AddStandingOptions(const StandingKind& kind, CLI::App& off, CLI::App& status,
                        StandingOptions& options) {
  off.add_option("ID", options.id, "Its capture id, or a unique prefix (default: the only one)")
      ->check(NotEmpty("omit it if only one is on"));
  off.add_option("--job", options.job, fmt::format("The {} of this job", kind.noun))
      ->check(NotEmpty("omit it if only one is on"));
  status.add_option("--job", options.shown_job, "Only of this job")
      ->check(NotEmpty("omit it for all"));
}

std::optional<int> StartStanding(Context& context, CaptureWatch& watch, const v1::CaptureSpec& spec,
                                 v1::Capture& capture) {
  if (const auto status = watch.Start(spec, capture); !status.ok()) {
    return FailStart(context, status);
  }
  if (const auto status = watch.Follow(capture, {.until_begun = true}); !status.ok()) {
    return FailWatching(context, capture, status);
  }
  if (!context.json) return std::nullopt;
  Print("{}", FormatCaptureJson(capture));
  return ExitCodeOf(capture);
}

int ShowStanding(Context& context, const StandingKind& kind, const std::string& job,
                 absl::FunctionRef<std::string(const v1::Capture&)> format) {
  v1::ListCapturesReply running;
  if (const auto status = ListStanding(context, kind, job, running); !status.ok()) {
    return Fail(context, status);
  }
  // kExitIncomplete is the greatest code, so that one incomplete capture decides.
  int code = running.captures().empty() ? kExitFailed : kExitDone;
  for (const v1::Capture& capture : running.captures()) {
    code = std::max<int>(code, ExitCodeOf(capture) == kExitDone ? kExitDone : kExitIncomplete);
  }
  if (context.json) {
    Print("{}", FormatJson(running));
    return code;
  }
  if (running.captures().empty()) {
    Print("off{}; turn it on with neurontrace {} on\n", job.empty() ? "" : " for job " + job,
          kind.command);
  }
  for (int i = 0; i < running.captures_size(); ++i) {
    Print("{}{}", i == 0 ? "" : "\n", format(running.captures(i)));
  }
  return code;
}

int TurnOffStanding(Context& context, const StandingKind& kind, const StandingOptions& options) {
  // Constructed first, before any call starts the threads of gRPC.
  CaptureWatch watch(context);
  std::string id = options.id;
  if (id.empty()) {
    v1::ListCapturesReply running;
    if (const auto status = ListStanding(context, kind, "", running); !status.ok()) {
      return Fail(context, status);
    }
    const auto chosen = ChooseStanding(running, kind, options.job);
    if (!chosen.ok()) {
      return absl::IsNotFound(chosen.status()) ? Fail(chosen.status()) : FailUsage(chosen.status());
    }
    id = *chosen;
  }
  v1::Capture capture;
  if (const auto status = GetCapture(context, id, capture); !status.ok()) {
    return Fail(context, status);
  }
  if (!IsOfKind(capture.spec(), kind)) {
    return Fail(FailedPrecondition("{} is not a {}; stop it with neurontrace capture stop {}",
                                   capture.capture_id(), kind.noun, capture.capture_id()));
  }
  if (const auto status = StopCapture(context, capture.capture_id(), capture); !status.ok()) {
    return Fail(context, status);
  }
  if (const auto status = watch.Follow(capture, {}); !status.ok()) {
    return FailWatching(context, capture, status);
  }
  if (context.json) {
    Print("{}", FormatCaptureJson(capture));
  } else {
    Print("{} {} is off\n", kind.noun, capture.capture_id());
  }
  return kExitDone;
}

}  // namespace neurontrace::cli
