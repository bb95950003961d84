// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xla_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/source/framework/xla/xla_client.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

using Kind = XlaAnswer::Kind;
using State = FrameworkTraceState;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kMsPerSecond = 1'000;
constexpr size_t kMiB = size_t{1} << 20;

// Folders of the sessions of a capture begin with this. The end, "_pid_" and a number, assigns the
// file to its process (PidOfDirectory).
std::string SessionPrefix(const CaptureId& capture_id) {
  return fmt::format("neurontrace-xla-{}_pid_", capture_id.ToString());
}

// Returns the name of the folder that a file is in; empty if the path has none.
std::string_view FolderNameOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return {};
  path = path.substr(0, slash);
  return path.substr(path.rfind('/') + 1);
}

uint64_t SumOf(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }

// XLA reports that it has another session as INTERNAL with the text of its profiler's lock (jax
// 0.12, torch_xla 2.9).
bool IsBusy(const absl::Status& status) {
  return absl::IsAlreadyExists(status) ||
         (absl::IsInternal(status) &&
          std::string_view(status.message().data(), status.message().size())
                  .find("nother profiling session") != std::string_view::npos);
}

std::string TextOf(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

XlaRecorder::XlaRecorder(const std::string& proc_root, std::unique_ptr<XlaCalls> calls,
                         const Clock& clock, AgentSourceMetrics& metrics)
    : proc_(proc_root),
      ports_(proc_root),
      clock_(clock),
      metrics_(metrics),
      calls_(std::move(calls)) {}

std::unique_ptr<XlaRecorder> XlaRecorder::Create(const std::string& directory, TaskRunner& runner,
                                                 const Clock& clock, AgentSourceMetrics& metrics) {
  if (!directory.starts_with('/')) return nullptr;
  return std::make_unique<XlaRecorder>("/proc", std::make_unique<XlaClient>(directory, runner),
                                       clock, metrics);
}

void XlaRecorder::Begin(const FrameworkOrder& order) {
  const auto [it, is_new] = captures_.try_emplace(order.capture_id);
  if (!is_new) return;
  Capture& capture = it->second;
  capture.order = order;
  for (const WorkerIdentity& worker : order.workers) {
    capture.targets.push_back(
        {.worker = worker,
         .session = SessionPrefix(order.capture_id) + std::to_string(worker.pid)});
  }
  const std::string unfit = DescribeUnfit(order);
  const bool is_late = SumOf(clock_.RealtimeNs(), kPrepareNs) > order.begin_realtime_ns;
  const size_t share = std::min(limits::kXlaAnswerBytesMax,
                                FreeBytes() / std::max<size_t>(capture.targets.size(), 1));
  for (Target& target : capture.targets) {
    if (!unfit.empty()) {
      Settle(State::kFailed, unfit, target);
    } else if (is_late) {
      Settle(State::kTooLate, "the planned moment had passed when this agent received the order",
             target);
    } else {
      Ask(capture.order, share, target);
    }
  }
}

// The aggregator refuses both, too.
std::string XlaRecorder::DescribeUnfit(const FrameworkOrder& order) {
  if (order.steps > 0) return "XLA records by time, and not by steps";
  if (order.duration_ns > limits::kXlaDurationNsMax) {
    return fmt::format("XLA is asked for at most {} s, as it keeps a trace in memory",
                       limits::kXlaDurationNsMax / kNsPerMs / kMsPerSecond);
  }
  return "";
}

void XlaRecorder::Ask(const FrameworkOrder& order, size_t share, Target& target) {
  if (share < limits::kXlaAnswerBytesMin) {
    return Settle(State::kFailed,
                  fmt::format("this agent has room for {} MiB of answers at a time, which is too "
                              "little for all workers that are asked",
                              limits::kXlaAnswersBytesMax / kMiB),
                  target);
  }
  auto address = ports_.Find(target.worker.pid);
  // Afterwards: until then another process may have taken the place of one that ended.
  const auto start_ticks = proc_.StartTimeTicks(target.worker.pid);
  if (!start_ticks || *start_ticks != target.worker.start_time_ticks) {
    return Settle(State::kNotListening,
                  "the process has ended, or the kernel does not show it here", target);
  }
  if (!address.ok()) return Settle(State::kNotListening, TextOf(address.status()), target);
  target.address = *std::move(address);
  target.answer_bytes_max = share;
  target.is_open = true;
  target.state = State::kAsked;
  AgentSourceMetrics::Add(metrics_.xla_orders);
  const uint64_t ahead_ns = order.begin_realtime_ns - clock_.RealtimeNs();
  calls_->Begin({.session = target.session,
                 .address = target.address,
                 .begin_realtime_ns = order.begin_realtime_ns,
                 .duration_ns = order.duration_ns,
                 .timeout_ns = ahead_ns + order.duration_ns + limits::kFrameworkFileWaitNs,
                 .answer_bytes_max = share,
                 .with_stacks = order.with_stacks},
                *this);
}

size_t XlaRecorder::FreeBytes() const {
  size_t used = 0;
  for (const auto& [capture_id, capture] : captures_) {
    for (const Target& target : capture.targets) {
      if (target.is_open) used += target.answer_bytes_max;
    }
  }
  return limits::kXlaAnswersBytesMax - std::min(used, limits::kXlaAnswersBytesMax);
}

void XlaRecorder::OnAnswer(const std::string& session, const XlaAnswer& answer) {
  for (auto& [capture_id, capture] : captures_) {
    const auto target =
        std::find_if(capture.targets.begin(), capture.targets.end(),
                     [&](const Target& one) { return one.is_open && one.session == session; });
    if (target == capture.targets.end()) continue;
    target->is_open = false;
    if (answer.kind == Kind::kSaved) AgentSourceMetrics::Add(metrics_.xla_traces);
    if (answer.kind != Kind::kSaved && answer.kind != Kind::kWithout) {
      AgentSourceMetrics::Add(metrics_.xla_orders_failed);
    }
    switch (answer.kind) {
      case Kind::kSaved:
      case Kind::kWithout:
        if (!IsFinal(target->state)) target->state = State::kRecording;
        target->file_deadline_ns = clock_.MonotonicNs() + limits::kFrameworkFileWaitNs;
        target->detail = answer.kind == Kind::kSaved
                             ? ""
                             : "it answered without a trace, so that it should write a file itself";
        break;
      case Kind::kNotXSpace:
        Settle(State::kFailed,
               fmt::format("it answered with {} bytes that are not an XSpace; they were not kept",
                           answer.bytes),
               *target);
        break;
      case Kind::kNotSaved:
        Settle(State::kFailed,
               fmt::format("its trace of {} bytes could not be saved: {}", answer.bytes,
                           TextOf(answer.status)),
               *target);
        break;
      case Kind::kFailed:
        ApplyFailure(capture, answer.status, *target);
        break;
    }
    return;
  }
}

void XlaRecorder::ApplyFailure(const Capture& capture, const absl::Status& status,
                               Target& target) const {
  const std::string text = TextOf(status);
  if (IsBusy(status)) {
    return Settle(State::kBusy,
                  "its profiler was in use, for instance by the program itself or by another "
                  "capture",
                  target);
  }
  switch (status.code()) {
    case absl::StatusCode::kUnimplemented:
      return Settle(State::kNotListening,
                    fmt::format("what listens at {} is not XLA's ProfilerService ({}); start the "
                                "process with {}=PORT",
                                target.address, text, kXlaPortVariable),
                    target);
    case absl::StatusCode::kUnavailable:
      // Before the moment nothing had been recorded that could be missing.
      if (clock_.RealtimeNs() < capture.order.begin_realtime_ns) {
        return Settle(State::kNotListening,
                      fmt::format("nobody answers at {}: {}", target.address, text), target);
      }
      return Settle(State::kNotSeen,
                    fmt::format("it ended, or closed the call, before its answer: {}", text),
                    target);
    case absl::StatusCode::kResourceExhausted:
      return Settle(State::kFailed,
                    fmt::format("its answer may have {} MiB ({}); capture for a shorter time or "
                                "fewer workers",
                                target.answer_bytes_max / kMiB, text),
                    target);
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return Settle(State::kNotSeen,
                    fmt::format("it did not answer within {} s after the end",
                                limits::kFrameworkFileWaitNs / kNsPerMs / kMsPerSecond),
                    target);
    default:
      return Settle(State::kFailed, fmt::format("its profiler reports an error: {}", text), target);
  }
}

void XlaRecorder::Settle(FrameworkTraceState state, std::string detail, Target& target) {
  if (IsFinal(target.state)) return;
  target.state = state;
  target.detail = std::move(detail);
}

// A file is a file, whatever was expected of its worker: an agent that was restarted finds those of
// its earlier run.
void XlaRecorder::OnFile(const CaptureId& capture_id, std::string_view name) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return;
  for (Target& target : it->second.targets) {
    if (FolderNameOf(name) != target.session) continue;
    target.state = State::kFileSeen;
    target.detail.clear();
  }
}

void XlaRecorder::Stop(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end() || std::exchange(it->second.is_stopped, true)) return;
  Capture& capture = it->second;
  capture.deadline_ns = clock_.MonotonicNs() + limits::kFrameworkFileWaitNs;
  const uint64_t end_ns = SumOf(capture.order.begin_realtime_ns, capture.order.duration_ns);
  // The end of the capture and that of the session are one moment on two clocks.
  if (SumOf(clock_.RealtimeNs(), kPrepareNs) >= end_ns) return;
  for (const Target& target : capture.targets) {
    if (target.is_open) calls_->End(target.session);
  }
}

void XlaRecorder::Poll() {
  const uint64_t now_ns = clock_.MonotonicNs();
  for (auto& [capture_id, capture] : captures_) {
    for (Target& target : capture.targets) {
      if (target.is_open && capture.is_stopped && now_ns >= capture.deadline_ns) {
        calls_->Cancel(target.session);
      }
      if (target.is_open || now_ns < target.file_deadline_ns || target.state != State::kRecording) {
        continue;
      }
      Settle(State::kNotSeen,
             fmt::format("it answered, and no file of {} appeared in the framework directory; "
                         "torch_xla writes it with the rights of the job, below plugins/profile",
                         target.session),
             target);
    }
  }
}

std::vector<FrameworkTrace> XlaRecorder::Traces(const CaptureId& capture_id) const {
  std::vector<FrameworkTrace> traces;
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return traces;
  for (const Target& target : it->second.targets) {
    traces.push_back({target.worker, std::string(framework()), target.state, target.detail});
  }
  return traces;
}

bool XlaRecorder::IsFileOf(const CaptureId& capture_id, std::string_view name) const {
  return FolderNameOf(name).starts_with(SessionPrefix(capture_id));
}

void XlaRecorder::Forget(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return;
  for (const Target& target : it->second.targets) {
    if (target.is_open) calls_->Cancel(target.session);
  }
  captures_.erase(it);
}

}  // namespace neurontrace
