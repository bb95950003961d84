// SPDX-License-Identifier: Apache-2.0
// How a capture stops and ends, and what is said of those that did not deliver.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/session/capture_session.h"
#include "lib/trace/capture_obstacle.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

std::string NameOf(const CaptureWorkerStatus& status) {
  if (status.framework) return fmt::format("framework files of {}", status.worker.instance_id);
  return fmt::format("worker {}", ToString(status.worker));
}

std::string WithDetail(std::string text, const std::string& detail) {
  return detail.empty() ? text : fmt::format("{}: {}", text, detail);
}

std::string CouldNot(const CaptureWorkerStatus& status) {
  const std::string_view obstacle = WordsOf(status.obstacle);
  const bool says_so = status.detail.find(obstacle) != std::string::npos;
  std::string text = NameOf(status) + " could not take part";
  if (!says_so) text += fmt::format(" ({})", obstacle);
  return WithDetail(std::move(text), status.detail);
}

}  // namespace

void CaptureSession::Stop(const SessionTime& now, uint64_t in_ns) {
  if (record_.state != CaptureState::kRecording) return;
  record_.state = CaptureState::kStopping;
  record_.stopped_realtime_ns = now.realtime_ns + in_ns;
  stopped_monotonic_ns_ = now.monotonic_ns + in_ns;
}

bool CaptureSession::IsStopDue(const SessionTime& now) const {
  return record_.state == CaptureState::kRecording && stop_due_monotonic_ns_ != 0 &&
         now.monotonic_ns >=
             stop_due_monotonic_ns_ - std::min(stop_due_monotonic_ns_, stop_lead_ns_);
}

uint64_t CaptureSession::StopInNs(const SessionTime& now) const {
  return stop_due_monotonic_ns_ > now.monotonic_ns ? stop_due_monotonic_ns_ - now.monotonic_ns : 0;
}

bool CaptureSession::IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const {
  const auto it = presence_.find(part.agent_id);
  if (it == presence_.end()) return true;
  const Presence& presence = it->second;
  const uint64_t since = presence.connected
                             ? std::max(presence.heard_monotonic_ns, stopped_monotonic_ns_)
                             : std::max(presence.changed_monotonic_ns, stopped_monotonic_ns_);
  const uint64_t patience_ns =
      presence.connected ? limits::kAgentSilenceMaxNs : limits::kAgentReturnMaxNs;
  return now.monotonic_ns >= since + patience_ns;
}

bool CaptureSession::IsEndDue(const SessionTime& now) const {
  return record_.state == CaptureState::kStopping &&
         std::all_of(record_.agents.begin(), record_.agents.end(),
                     [&](const auto& part) { return part.finished || IsGivenUp(part, now); });
}

bool CaptureSession::MatchedNothing() const {
  return record_.workers.empty() &&
         std::all_of(record_.agents.begin(), record_.agents.end(),
                     [](const auto& part) { return part.matched_workers == 0; });
}

void CaptureSession::SayVanished(CaptureAgentPart& part) {
  part.vanished = true;
  const bool connected = presence_[part.agent_id].connected;
  WarnInto(
      record_.end_warnings,
      fmt::format("agent {} on {} {}: what it had not delivered is missing", part.agent_id,
                  part.instance_id,
                  connected ? "is connected but did not finish" : "is gone and did not return"));
}

bool CaptureSession::CheckWorkers() {
  bool all_delivered = true;
  for (CaptureWorkerStatus& status : record_.workers) {
    const auto agent = agent_of_.find(status.worker.instance_id);
    const CaptureAgentPart* const part =
        agent == agent_of_.end() ? nullptr : FindPart(agent->second);
    const bool has_finished = part != nullptr && part->finished;
    // Its flight recorder had given way, and has nothing of its own to deliver.
    if (status.state == CaptureWorkerState::kSuspended && has_finished &&
        record_.spec.mode == CaptureMode::kFlightRecorder) {
      status.state = CaptureWorkerState::kComplete;
    }
    if (status.state == CaptureWorkerState::kComplete) continue;
    // A late agent may know nothing of a worker that ended meanwhile. Whether all of it is there
    // its streams say.
    const bool is_late = has_finished && part->vanished;
    if (is_late && !IsFinal(status.state)) continue;
    all_delivered = false;
    // What its agent may still bring, it may still tell.
    if (part != nullptr && !part->finished && !IsFinal(status.state)) continue;
    const bool never_began = status.state == CaptureWorkerState::kArmed ||
                             (status.state == CaptureWorkerState::kStarting &&
                              status.obstacle != CaptureObstacle::kNone);
    if (never_began) {
      status.state = CaptureWorkerState::kRefused;
      if (status.obstacle == CaptureObstacle::kNone) {
        status.obstacle = CaptureObstacle::kNoAnswer;
        status.detail = "it was armed, and never said that it began";
      }
    } else if (!IsFinal(status.state)) {
      // Its agent has finished and knows nothing of it: both died before anything of it was stored.
      status.state = CaptureWorkerState::kLost;
      status.obstacle = CaptureObstacle::kAgentLost;
      status.detail = "it and its agent ended, and what had not been stored with them";
    }
    if (status.state == CaptureWorkerState::kRefused) {
      WarnInto(record_.end_warnings, CouldNot(status));
    } else {
      WarnInto(record_.end_warnings,
               WithDetail(NameOf(status) + " was lost while recording", status.detail));
    }
  }
  return all_delivered;
}

bool CaptureSession::CheckExecutions() {
  if (!record_.begin || !record_.spec.conditions.by_execution()) return true;
  const CaptureBegin& begin = *record_.begin;
  bool all_reached = true;
  for (const CaptureWorkerStatus& status : record_.workers) {
    // Of agents that know nothing of executions all there is comes from the beginning on.
    const bool recorded = status.first_execution != 0 || status.events_read > 0;
    if (status.framework || status.state != CaptureWorkerState::kComplete || recorded) continue;
    all_reached = false;
    if (begin.first_execution == 0) continue;
    WarnInto(record_.end_warnings,
             fmt::format("{} recorded nothing: execution {} was to be its first, and {}",
                         NameOf(status), begin.first_execution,
                         status.newest_execution == 0
                             ? "it told of none"
                             : fmt::format("its newest was {}", status.newest_execution)));
  }
  if (!all_reached && begin.first_execution == 0) {
    WarnInto(record_.end_warnings,
             "nothing was recorded: no execution to begin at was found, as its workers told of none"
             " before it was stopped");
  }
  return all_reached;
}

void CaptureSession::End(const SessionTime& now, std::string_view what_there_was) {
  bool complete = true;
  record_.end_warnings.clear();
  for (CaptureAgentPart& part : record_.agents) {
    if (part.finished) continue;
    SayVanished(part);
    complete = false;
  }
  TakeInUnreported();
  if (MatchedNothing()) {
    WarnInto(record_.end_warnings, fmt::format("no worker matched; {}", what_there_was));
    complete = false;
  }
  complete = CheckWorkers() && complete;
  complete = CheckExecutions() && complete;
  // How long it stays open counts from its first end.
  if (!ended()) record_.ended_realtime_ns = now.realtime_ns;
  record_.state = complete ? CaptureState::kComplete : CaptureState::kIncomplete;
}

void CaptureSession::Warn(std::string warning) { WarnInto(record_.warnings, std::move(warning)); }

void CaptureSession::WarnInto(std::vector<std::string>& warnings, std::string warning) {
  if (std::find(warnings.begin(), warnings.end(), warning) != warnings.end()) return;
  if (warnings.size() + 1 < limits::kCaptureWarningsMax) {
    warnings.push_back(std::move(warning));
    return;
  }
  if (warnings.size() < limits::kCaptureWarningsMax) warnings.emplace_back();
  warnings.back() = fmt::format("and {} more warnings", ++warnings_dropped_);
}

}  // namespace neurontrace
