// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

// The name of a worker's file before Kineto adds "_PID", the worker's pid in its own namespace, in
// front of the ending.
std::string StemOf(const CaptureId& capture_id, uint32_t pid) {
  return fmt::format("neurontrace-{}-{}", capture_id.ToString(), pid);
}

std::string_view BaseNameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// Returns whether the file is that of the stem: "neurontrace-ID-47" is not "neurontrace-ID-4".
bool HasStem(std::string_view name, std::string_view stem) {
  return name.size() > stem.size() && name.starts_with(stem) &&
         (name[stem.size()] == '_' || name[stem.size()] == '.');
}

uint64_t Plus(uint64_t a, uint64_t b) { return a + std::min(b, UINT64_MAX - a); }

}  // namespace

KinetoRecorder::KinetoRecorder(std::string trace_directory, ProcFiles proc, const Clock& clock,
                               AgentSourceMetrics& metrics)
    : trace_directory_(std::move(trace_directory)),
      proc_(std::move(proc)),
      clock_(clock),
      metrics_(metrics) {}

void KinetoRecorder::Begin(const FrameworkOrder& order) {
  const auto [it, is_new] = captures_.try_emplace(order.capture_id);
  if (!is_new) return;
  Capture& capture = it->second;
  capture.order = order;
  for (const WorkerIdentity& worker : order.workers) {
    Target& target = capture.targets.emplace_back(Target{worker});
    // What it said last holds until it asks again.
    if (const Client* const client = FindClient(worker)) {
      Apply(client->takes_activities ? KinetoEvent::kReadyPoll : KinetoEvent::kOccupiedPoll,
            target);
    }
  }
}

void KinetoRecorder::OnFile(const CaptureId& capture_id, std::string_view name) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return;
  for (Target& target : it->second.targets) {
    if (HasStem(BaseNameOf(name), StemOf(capture_id, target.worker.pid))) {
      Apply(KinetoEvent::kFileAppeared, target);
    }
  }
}

void KinetoRecorder::Stop(const CaptureId& capture_id) {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end() || std::exchange(it->second.stopped, true)) return;
  Capture& capture = it->second;
  const uint64_t end_ns = Plus(capture.order.begin_realtime_ns, capture.order.duration_ns);
  // The end of the capture and that of the trace are one moment on two clocks.
  capture.stopped_early =
      !IsByStep(capture.order) && Plus(clock_.RealtimeNs(), kPrepareNs) < end_ns;
  capture.deadline_ns =
      clock_.MonotonicNs() + (capture.stopped_early ? 0 : limits::kFrameworkFileWaitNs);
  capture.is_closed = true;
  ApplyToAll(KinetoEvent::kMomentPassed, capture);
  Poll();
}

void KinetoRecorder::Poll() {
  const uint64_t now_ns = clock_.MonotonicNs();
  std::erase_if(clients_, [now_ns](const auto& entry) {
    return now_ns - entry.second.asked_ns > limits::kKinetoSilenceNs;
  });
  for (auto& [capture_id, capture] : captures_) {
    if (!capture.is_closed && !IsInTime(capture)) {
      capture.is_closed = true;
      ApplyToAll(KinetoEvent::kMomentPassed, capture);
    }
    for (Target& target : capture.targets) {
      if (FindClient(target.worker) == nullptr) Apply(KinetoEvent::kSilent, target);
    }
    if (capture.stopped && now_ns >= capture.deadline_ns) {
      ApplyToAll(KinetoEvent::kDeadlinePassed, capture);
    }
  }
}

std::vector<FrameworkTrace> KinetoRecorder::Traces(const CaptureId& capture_id) const {
  std::vector<FrameworkTrace> traces;
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return traces;
  for (const Target& target : it->second.targets) {
    traces.push_back({target.worker, std::string(framework()), ReportedState(target.state),
                      DetailOf(it->second, target)});
  }
  return traces;
}

bool KinetoRecorder::IsFileOf(const CaptureId& capture_id, std::string_view name) const {
  return BaseNameOf(name).starts_with(fmt::format("neurontrace-{}-", capture_id.ToString()));
}

std::string KinetoRecorder::OnRequest(const KinetoClient& sender, bool takes_activities) {
  const Client* const client = UpdateClient(sender, takes_activities);
  if (client == nullptr) return "";
  std::string config;
  // A worker has one order at a time: for a second capture it is occupied.
  bool has_order = HasOrder(*client);
  for (auto& [capture_id, capture] : captures_) {
    for (Target& target : capture.targets) {
      if (FindClient(target.worker) != client) continue;
      const bool is_own = target.state == KinetoState::kArmed;
      const bool takes = takes_activities && (is_own || !has_order);
      Apply(takes ? KinetoEvent::kReadyPoll : KinetoEvent::kOccupiedPoll, target);
      if (target.state != KinetoState::kPolling || capture.is_closed || !IsInTime(capture)) {
        continue;
      }
      config = ConfigFor(capture.order, target.worker);
      Apply(KinetoEvent::kOrderSent, target);
      ordered_ = capture_id;
      has_order = true;
    }
  }
  return config;
}

// Called right after OnRequest has returned the order, so that only that one can be meant.
void KinetoRecorder::OnNotDelivered(const KinetoClient& sender) {
  const auto client = clients_.find(sender.pid);
  const auto capture = captures_.find(ordered_);
  if (client == clients_.end() || capture == captures_.end()) return;
  for (Target& target : capture->second.targets) {
    if (FindClient(target.worker) == &client->second) Apply(KinetoEvent::kOrderFailed, target);
  }
}

bool KinetoRecorder::HasOrder(const Client& client) const {
  for (const auto& [capture_id, capture] : captures_) {
    for (const Target& target : capture.targets) {
      const bool has =
          target.state == KinetoState::kArmed || target.state == KinetoState::kRecording;
      if (has && FindClient(target.worker) == &client) return true;
    }
  }
  return false;
}

// A pid that is used again, or that a tap only claims, has another start time.
const KinetoRecorder::Client* KinetoRecorder::FindClient(const WorkerIdentity& worker) const {
  const auto it = clients_.find(worker.pid);
  if (it == clients_.end() || it->second.start_time_ticks == 0 ||
      it->second.start_time_ticks != worker.start_time_ticks) {
    return nullptr;
  }
  return &it->second;
}

KinetoRecorder::Client* KinetoRecorder::UpdateClient(const KinetoClient& sender,
                                                     bool takes_activities) {
  const uint64_t now_ns = clock_.MonotonicNs();
  const uint64_t start_ticks = proc_.StartTimeTicks(sender.pid).value_or(0);
  auto it = clients_.find(sender.pid);
  if (it == clients_.end() || it->second.start_time_ticks != start_ticks) {
    // A process that cannot be looked into is none of a tap that the kernel has identified.
    if (start_ticks == 0 ||
        (it == clients_.end() && clients_.size() >= limits::kKinetoClientsMax)) {
      AgentSourceMetrics::Add(metrics_.kineto_clients_refused);
      return nullptr;
    }
    it = clients_.insert_or_assign(sender.pid, Client{.start_time_ticks = start_ticks}).first;
  } else {
    // The first request of a process comes at once, and says nothing of its rhythm.
    it->second.period_ns = std::min(now_ns - it->second.asked_ns, limits::kKinetoSilenceNs);
  }
  it->second.asked_ns = now_ns;
  it->second.takes_activities = takes_activities;
  return &it->second;
}

bool KinetoRecorder::IsInTime(const Capture& capture) const {
  if (IsByStep(capture.order)) return !capture.stopped;
  return Plus(clock_.RealtimeNs(), kPrepareNs) <= capture.order.begin_realtime_ns;
}

void KinetoRecorder::Apply(KinetoEvent event, Target& target) {
  target.state = NextState(target.state, event);
}

void KinetoRecorder::ApplyToAll(KinetoEvent event, Capture& capture) {
  for (Target& target : capture.targets) Apply(event, target);
}

// The keys are those of libkineto's Config. Kinds of the CPU alone, so that Kineto leaves the
// devices, and with them the runtime's capture, to the tap.
std::string KinetoRecorder::ConfigFor(const FrameworkOrder& order,
                                      const WorkerIdentity& worker) const {
  std::string config;
  if (IsByStep(order)) {
    config = fmt::format(
        "PROFILE_START_ITERATION={}\nPROFILE_START_ITERATION_ROUNDUP={}\n"
        "ACTIVITIES_WARMUP_ITERATIONS=1\nACTIVITIES_ITERATIONS={}\n",
        order.first_step, order.first_step == 0 ? kStepRoundUp : 1, order.steps);
  } else {
    // Rounded up: before the moment there would be nothing beside it.
    config = fmt::format(
        "PROFILE_START_TIME={}\nACTIVITIES_WARMUP_PERIOD_SECS=0\nACTIVITIES_DURATION_MSECS={}\n",
        (order.begin_realtime_ns + 999'999) / 1'000'000,
        std::max<uint64_t>(order.duration_ns / 1'000'000, 1));
  }
  return config + fmt::format(
                      "ACTIVITIES_LOG_FILE={}/{}.pt.trace.json\n"
                      "ACTIVITY_TYPES=cpu_op,user_annotation{}\nREQUEST_TRACE_ID={}\n{}",
                      trace_directory_, StemOf(order.capture_id, worker.pid),
                      order.with_stacks ? ",python_function" : "", order.capture_id.ToString(),
                      order.with_stacks ? "PROFILE_WITH_STACK=true\n" : "");
}

// What the state alone does not say: why, and what to do.
std::string KinetoRecorder::DetailOf(const Capture& capture, const Target& target) const {
  const Client* const client = FindClient(target.worker);
  switch (target.state) {
    case KinetoState::kPolling:
      if (client != nullptr && !IsByStep(capture.order)) {
        const uint64_t next_ns = client->asked_ns + client->period_ns;
        const uint64_t now_ns = clock_.MonotonicNs();
        const uint64_t in_ns = next_ns > now_ns ? next_ns - now_ns : 0;
        if (Plus(Plus(clock_.RealtimeNs(), in_ns), kPrepareNs) > capture.order.begin_realtime_ns) {
          return "by its rhythm it asks for orders again only after the planned moment";
        }
      }
      return "";
    case KinetoState::kOccupied:
      return "its profiler is in use";
    case KinetoState::kBusy:
      return "its profiler was in use, for instance by the program itself or by another capture";
    case KinetoState::kTooLate:
      if (!capture.order.is_planned) {
        return "the order came without a moment ahead, because this host's clock was not known yet "
               "or the agent was away; repeat the capture in a few seconds";
      }
      return capture.stopped_early ? "the capture was stopped before the worker asked for orders"
                                   : "it did not ask for orders before the planned moment";
    case KinetoState::kNotListening:
      return "it has not asked this agent for orders; `neurontrace doctor` on its machine says "
             "what its environment lacks";
    case KinetoState::kGone:
      return "it ended, or stopped asking for orders, before its file appeared";
    case KinetoState::kNotSeen:
      return capture.stopped_early
                 ? "the capture was stopped before the trace ended, which cannot be stopped early"
                 : fmt::format(
                       "no file {}_* appeared in {}; Kineto writes only below /tmp unless "
                       "KINETO_ONDEMAND_TRACE_DIR of the worker says otherwise",
                       StemOf(capture.order.capture_id, target.worker.pid), trace_directory_);
    default:
      return "";
  }
}

}  // namespace neurontrace
