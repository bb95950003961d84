// SPDX-License-Identifier: Apache-2.0
#include "cli/capture_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/capture_progress.h"
#include "cli/capture_view.h"
#include "cli/terminal_region.h"
#include "cli/text.h"
#include "lib/base/standard_streams.h"
#include "lib/trace/limits.h"

namespace neurontrace::cli {
namespace {

// Follow gives up after this long without an answer or progress.
constexpr auto kReconnectFor = std::chrono::seconds(30);
// How long Follow waits for the workers of a standing capture before it reports how it began.
// Workers that initialise later join later.
constexpr uint64_t kBeginWithinNs = 3'000'000'000;

// A call is recreated after this long, so that an aggregator that vanished without closing the
// connection, as in a loss of power, is detected.
constexpr auto kCallFor = std::chrono::seconds(20);

// How often a store that takes no data is reported, by the aggregator's clock.
constexpr uint64_t kStoreReportNs = 60'000'000'000;

// The time between two attempts.
constexpr auto kPause = std::chrono::milliseconds(200);

// Returns whether the begin of a capture is decided: every worker records or has failed, it has
// ended, or the workers have had enough time.
bool HasBegun(const v1::Capture& capture) {
  if (capture.state() != v1::CAPTURE_STATE_RECORDING)
    return capture.state() != v1::CAPTURE_STATE_ARMING;
  const uint64_t begin_ns = BeginOf(capture);
  if (capture.server_realtime_ns() < begin_ns) return false;
  if (capture.server_realtime_ns() > begin_ns + kBeginWithinNs) return true;
  for (const v1::CaptureWorkerStatus& worker : capture.workers()) {
    if (worker.state() == v1::CAPTURE_WORKER_STATE_ARMED ||
        worker.state() == v1::CAPTURE_WORKER_STATE_STARTING) {
      return false;
    }
  }
  return true;
}

// Returns whether Follow has reached its goal.
bool IsOver(const v1::Capture& capture, const WatchOptions& options) {
  return HasEnded(capture) || (options.until_begun && HasBegun(capture));
}

}  // namespace

// What a terminal shows of the capture. Draws nothing if stderr is not a terminal.
struct CaptureWatch::Screen {
  explicit Screen(bool enabled) : block(enabled) {}

  TerminalRegion block;
  CaptureProgress progress;
  WorkerRanks ranks;

  void Draw(const std::string& hint) {
    if (block.enabled()) block.Draw(progress.Lines(ranks, WindowOfStderr(), hint));
  }
};

CaptureWatch::CaptureWatch(Context& context)
    : context_(context), interrupts_([this](int count) { OnInterrupt(count); }) {
  // The channel is created after the watcher has blocked the signals, so that gRPC's threads
  // inherit the mask and every signal is delivered to the watcher.
  context.stub();  // its threads leave signals to the watcher
}

bool CaptureWatch::SetCurrent(grpc::ClientContext* call) {
  const MutexLock lock(mutex_);
  current_ = call;
  return !abandoned_;
}

grpc::Status CaptureWatch::Start(const v1::CaptureSpec& spec, v1::Capture& capture) {
  grpc::ClientContext call;
  SetDeadline(call, context_);
  v1::StartCaptureRequest request;
  *request.mutable_spec() = spec;
  SetCurrent(&call);
  // The interrupt may have come after the aggregator's answer: an answer counts.
  const grpc::Status status = context_.stub().StartCapture(&call, request, &capture);
  if (!SetCurrent(nullptr) && !status.ok()) {
    return {grpc::StatusCode::CANCELLED,
            "interrupted before the aggregator answered; `neurontrace captures` shows whether a "
            "capture started"};
  }
  return status;
}

void CaptureWatch::OnInterrupt(int count) {
  std::string stoppable;
  {
    const MutexLock lock(mutex_);
    interrupted_ = true;
    if (count == 1) stoppable = stoppable_;
  }
  // Without the lock: the call lasts seconds, and Follow needs the lock to read on. If it fails,
  // the user's wish to leave has priority.
  v1::Capture stopped;
  if (!stoppable.empty() && StopCapture(context_, stoppable, stopped).ok()) return;
  const MutexLock lock(mutex_);
  abandoned_ = true;
  abandoning_.NotifyAll();
  if (current_ != nullptr) current_->TryCancel();
}

void CaptureWatch::Pause() {
  const MutexLock lock(mutex_);
  abandoning_.WaitFor(mutex_, kPause, [this]() NT_REQUIRES(mutex_) { return abandoned_; });
}

std::string CaptureWatch::Hint(const WatchOptions& options) {
  const MutexLock lock(mutex_);
  if (!options.interrupt_stops) return "Ctrl-C: stop watching; the capture keeps running";
  return interrupted_ ? "Ctrl-C again: exit and let the capture finish by itself"
                      : "Ctrl-C: stop the capture; twice: exit and let it finish by itself";
}

// Also with --quiet, because a wait without a reason looks like a hang.
void CaptureWatch::ReportStore(const v1::Capture& capture, Screen& screen) {
  const uint64_t now_ns = std::max<uint64_t>(capture.server_realtime_ns(), 1);
  if (!capture.has_store_problem()) {
    if (std::exchange(store_reported_ns_, 0) == 0) return;
    // Nobody waits for the store any longer at an end with data missing, which need not work again.
    if (HasEnded(capture) && capture.state() != v1::CAPTURE_STATE_COMPLETE) return;
    screen.block.Clear();
    Print(
        stderr, "neurontrace: the aggregator's store takes data again; {}\n",
        HasEnded(capture) ? "everything that agents kept is stored" : "agents send what they kept");
    return;
  }
  if (store_reported_ns_ != 0 && now_ns < store_reported_ns_ + kStoreReportNs) return;
  store_reported_ns_ = now_ns;
  screen.block.Clear();
  Print(stderr, "neurontrace: {}\n  {} events wait at agents.\n",
        DescribeStoreProblem(capture.store_problem()), FormatCount(EventsWaiting(capture)));
}

// Also with --quiet, as ReportStore.
void CaptureWatch::ReportWait(const v1::Capture& capture, const WatchOptions& options,
                              const Screen& screen) {
  if (screen.block.enabled() || !wait_.IsDue(capture)) return;
  const bool is_first = !wait_.has_reported();
  // Messages about a running capture are without the agents.
  v1::Capture full;
  const bool has_agents = GetCapture(context_, capture.capture_id(), full).ok();
  if (has_agents && HasEnded(full)) return;
  const std::string text = wait_.Report(has_agents ? full : capture);
  if (text.empty()) return;
  Print(stderr, "neurontrace: {}\n", text);
  if (!is_first) return;
  Print(stderr,
        "  The capture ends without an instance that stays disconnected for {} or silent for {}.\n"
        "  {}\n  To follow it later: neurontrace captures watch {}\n",
        FormatDuration(limits::kAgentReturnMaxNs), FormatDuration(limits::kAgentSilenceMaxNs),
        options.interrupt_stops ? "Ctrl-C twice: exit and let it finish by itself"
                                : "Ctrl-C: stop watching; the capture finishes by itself",
        capture.capture_id());
}

grpc::Status CaptureWatch::ReadUntilOver(grpc::ClientContext& call, v1::Capture& capture,
                                         const WatchOptions& options, Screen& screen) {
  v1::CaptureReference reference;
  reference.set_capture_id(capture.capture_id());
  // Ranks are asked for with every call because workers may have joined in between.
  if (screen.block.enabled()) screen.ranks = FetchRanks(context_);
  const auto reader = context_.stub().WatchCapture(&call, reference);
  while (reader->Read(&capture)) {
    screen.progress.Update(capture);
    ReportStore(capture, screen);
    ReportWait(capture, options, screen);
    screen.Draw(Hint(options));
    if (options.on_change) options.on_change(capture);
    // The loop reads until the stream ends, so the cancellation only ends it early.
    if (IsOver(capture, options)) call.TryCancel();
  }
  return reader->Finish();
}

grpc::Status CaptureWatch::Follow(v1::Capture& capture, const WatchOptions& options) {
  {
    const MutexLock lock(mutex_);
    if (options.interrupt_stops) stoppable_ = capture.capture_id();
  }
  Screen screen(context_.progress);
  auto give_up = std::chrono::steady_clock::now() + kReconnectFor;
  for (;;) {
    grpc::ClientContext call;
    call.set_wait_for_ready(true);
    call.set_deadline(std::chrono::system_clock::now() + kCallFor);
    if (!SetCurrent(&call)) break;
    // The progress of the aggregator's clock shows whether the call delivered anything.
    const uint64_t known_realtime_ns = capture.server_realtime_ns();
    const grpc::Status status = ReadUntilOver(call, capture, options, screen);
    const bool is_abandoned = !SetCurrent(nullptr);
    // The result counts before the interrupt: a capture that is over needs no excuse.
    if (IsOver(capture, options)) return grpc::Status::OK;
    if (is_abandoned) break;
    if (capture.server_realtime_ns() != known_realtime_ns) {
      give_up = std::chrono::steady_clock::now() + kReconnectFor;
    }
    // These statuses mean that the aggregator restarts, closes or is silent. Every other one is a
    // refusal, which a repetition does not change.
    const bool is_passing = status.ok() || status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                            status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!is_passing) return status;
    if (std::chrono::steady_clock::now() > give_up) {
      return status.ok() ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "it reports no progress")
                         : status;
    }
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
      screen.Draw("no answer from the aggregator, retrying; the capture keeps running");
    }
    Pause();
  }
  return {grpc::StatusCode::CANCELLED, "stopped watching"};
}

WorkerRanks FetchRanks(Context& context) {
  grpc::ClientContext call;
  SetDeadline(call, context);
  v1::ListWorkersReply reply;
  WorkerRanks ranks;
  if (context.stub().ListWorkers(&call, {}, &reply).ok()) ranks.Take(reply);
  return ranks;
}

int FailStart(const Context& context, const grpc::Status& status) {
  Fail(context, status);
  return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? kExitUsage : kExitFailed;
}

int FailWatching(const Context& context, const v1::Capture& capture, const grpc::Status& status) {
  if (status.error_code() == grpc::StatusCode::CANCELLED) {
    Print(stderr, "neurontrace: {}\n", status.error_message());
  } else {
    Fail(context, status);
  }
  if (status.error_code() == grpc::StatusCode::NOT_FOUND) return kExitFailed;
  const std::string& id = capture.capture_id();
  Print(stderr,
        "  The capture keeps running without this command.\n"
        "  To watch it:   neurontrace captures watch {}\n"
        "  To stop it:    neurontrace capture stop {}\n",
        id, id);
  return kExitFailed;
}

}  // namespace neurontrace::cli
