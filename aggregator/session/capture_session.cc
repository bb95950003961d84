// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/session/worker_obstacle.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

bool IsFinal(CaptureWorkerState state) {
  return state == CaptureWorkerState::kComplete || state == CaptureWorkerState::kRefused ||
         state == CaptureWorkerState::kLost;
}

std::string NameOf(const CaptureWorkerStatus& status) {
  if (status.framework) return fmt::format("framework files of {}", status.worker.instance_id);
  return fmt::format("worker {}", ToString(status.worker));
}

std::string WithDetail(std::string text, const std::string& detail) {
  return detail.empty() ? text : fmt::format("{}: {}", text, detail);
}

}  // namespace

CaptureSession::CaptureSession(const CaptureId& id, const CaptureSpec& spec,
                               const SessionTime& now) {
  record_.id = id;
  record_.spec = spec;
  record_.state = CaptureState::kRecording;
  record_.started_realtime_ns = now.realtime_ns;
  if (spec.duration_ns > 0) {
    stop_due_monotonic_ns_ = spec.duration_ns > UINT64_MAX - now.monotonic_ns
                                 ? UINT64_MAX
                                 : now.monotonic_ns + spec.duration_ns;
  }
}

CaptureSession::CaptureSession(CaptureRecord record, const SessionTime& now)
    : record_(std::move(record)) {
  for (size_t i = 0; i < record_.workers.size(); ++i) {
    worker_at_[{record_.workers[i].worker, record_.workers[i].framework}] = i;
  }
  for (const CaptureAgentPart& part : record_.agents) {
    presence_[part.agent_id] = {.connected = false,
                                .changed_monotonic_ns = now.monotonic_ns,
                                .heard_monotonic_ns = now.monotonic_ns};
  }
  for (CaptureAgentPart& part : record_.agents) {
    if (part.away_since_realtime_ns == 0) part.away_since_realtime_ns = now.realtime_ns;
  }
  if (record_.state == CaptureState::kStopping) stopped_monotonic_ns_ = now.monotonic_ns;
  if (record_.state != CaptureState::kRecording || record_.spec.duration_ns == 0) return;
  // The time the aggregator was away counts: the wall clock is all that is left of it.
  const uint64_t passed = now.realtime_ns > record_.started_realtime_ns
                              ? now.realtime_ns - record_.started_realtime_ns
                              : 0;
  const uint64_t left = record_.spec.duration_ns > passed ? record_.spec.duration_ns - passed : 0;
  stop_due_monotonic_ns_ = now.monotonic_ns + left;
}

bool CaptureSession::Selects(const AgentInfo& agent) const {
  const auto& ids = record_.spec.instance_ids;
  return ids.empty() || std::find(ids.begin(), ids.end(), agent.instance_id) != ids.end();
}

CaptureAgentPart* CaptureSession::FindPart(std::string_view agent_id) {
  const auto it = std::find_if(record_.agents.begin(), record_.agents.end(),
                               [&](const auto& part) { return part.agent_id == agent_id; });
  return it == record_.agents.end() ? nullptr : &*it;
}

const CaptureAgentPart* CaptureSession::FindPart(std::string_view agent_id) const {
  return const_cast<CaptureSession*>(this)->FindPart(agent_id);
}

bool CaptureSession::Awaits(std::string_view agent_id) const {
  const CaptureAgentPart* const part = FindPart(agent_id);
  return part != nullptr && !part->finished && !part->given_up;
}

bool CaptureSession::IsOpen() const {
  return ended() && std::any_of(record_.agents.begin(), record_.agents.end(),
                                [](const auto& part) { return !part.finished && !part.given_up; });
}

void CaptureSession::GiveUpOn(std::string_view agent_id) {
  if (CaptureAgentPart* const part = FindPart(agent_id)) part->given_up = !part->finished;
}

void CaptureSession::GiveUpOnAll() {
  for (CaptureAgentPart& part : record_.agents) part.given_up = !part.finished;
}

bool CaptureSession::IsOverdue(const SessionTime& now) const {
  return ended() && now.realtime_ns >= record_.ended_realtime_ns + limits::kLateAgentMaxNs;
}

std::vector<WorkerIdentity> CaptureSession::WorkersGoingOn(std::string_view instance_id) const {
  std::vector<WorkerIdentity> workers;
  for (const CaptureWorkerStatus& status : record_.workers) {
    if (status.framework || IsFinal(status.state)) continue;
    if (status.worker.instance_id == instance_id) workers.push_back(status.worker);
  }
  return workers;
}

bool CaptureSession::Join(const AgentInfo& agent, const SessionTime& now) {
  if (!Selects(agent)) return false;
  CaptureAgentPart* part = FindPart(agent.agent_id);
  if (part == nullptr) {
    if (record_.state != CaptureState::kRecording) return false;
    RemoveBystander({.instance_id = agent.instance_id});
    part = &record_.agents.emplace_back();
    part->agent_id = agent.agent_id;
    part->instance_id = agent.instance_id;
  }
  part->away_since_realtime_ns = 0;
  presence_[agent.agent_id] = {.connected = true,
                               .changed_monotonic_ns = now.monotonic_ns,
                               .heard_monotonic_ns = now.monotonic_ns};
  return Awaits(agent.agent_id);
}

bool CaptureSession::Leave(std::string_view agent_id, const SessionTime& now) {
  const auto it = presence_.find(agent_id);
  if (it == presence_.end()) return false;
  it->second.connected = false;
  it->second.changed_monotonic_ns = now.monotonic_ns;
  FindPart(agent_id)->away_since_realtime_ns = now.realtime_ns;
  return true;
}

bool CaptureSession::OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                                    const SessionTime& now) {
  const CaptureAgentPart* const part = FindPart(agent_id);
  if (part == nullptr || status.worker.instance_id != part->instance_id) return false;
  if (ended() && !Awaits(agent_id)) return false;
  presence_[part->agent_id].heard_monotonic_ns = now.monotonic_ns;
  const auto [it, is_new] =
      worker_at_.try_emplace({status.worker, status.framework}, record_.workers.size());
  if (is_new) {
    if (record_.workers.size() >= limits::kCaptureWorkersMax) {
      worker_at_.erase(it);
      Warn(fmt::format("more than {} workers report: the status of further ones is not kept",
                       limits::kCaptureWorkersMax));
      return false;
    }
    record_.workers.push_back(status);
    record_.workers.back().worker_state = WorkerState::kUnspecified;
    if (!status.framework) {
      record_.workers.back().worker_state =
          Obstacle(RemoveBystander(status.worker), status.worker_state);
    }
    return true;
  }
  CaptureWorkerStatus& known = record_.workers[it->second];
  const bool is_news = known.state != status.state || known.detail != status.detail;
  const WorkerState worker_state = Obstacle(known.worker_state, status.worker_state);
  known = status;
  known.worker_state = worker_state;
  return is_news;
}

bool CaptureSession::OnAgentStatus(std::string_view agent_id, uint32_t matched_workers,
                                   bool finished, const SessionTime& now) {
  CaptureAgentPart* const part = FindPart(agent_id);
  if (part == nullptr || (ended() && !Awaits(agent_id))) return false;
  presence_[part->agent_id].heard_monotonic_ns = now.monotonic_ns;
  const CaptureAgentPart before = *part;
  part->reported = true;
  part->matched_workers = std::max(part->matched_workers, matched_workers);
  // An agent is asked to stop before it can have finished; what a confused one says earlier must
  // not end its part.
  part->finished = part->finished || (finished && record_.state != CaptureState::kRecording);
  return *part != before;
}

void CaptureSession::Stop(const SessionTime& now) {
  if (record_.state != CaptureState::kRecording) return;
  record_.state = CaptureState::kStopping;
  record_.stopped_realtime_ns = now.realtime_ns;
  stopped_monotonic_ns_ = now.monotonic_ns;
}

bool CaptureSession::IsStopDue(const SessionTime& now) const {
  return record_.state == CaptureState::kRecording && stop_due_monotonic_ns_ != 0 &&
         now.monotonic_ns >= stop_due_monotonic_ns_;
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
    if (status.state == CaptureWorkerState::kComplete) continue;
    const auto part = std::find_if(
        record_.agents.begin(), record_.agents.end(),
        [&](const auto& other) { return other.instance_id == status.worker.instance_id; });
    // A late agent may know nothing of a worker that ended meanwhile. Whether all of it is there
    // its streams say.
    const bool is_late = part != record_.agents.end() && part->vanished && part->finished;
    if (is_late && !IsFinal(status.state)) continue;
    all_delivered = false;
    // What its agent may still bring, it may still tell.
    if (part != record_.agents.end() && !part->finished && !IsFinal(status.state)) continue;
    if (!IsFinal(status.state)) {
      // Its agent has finished and knows nothing of it: both died before anything of it was stored.
      status.state = CaptureWorkerState::kLost;
      status.detail = "it and its agent ended, and what had not been stored with them";
    }
    if (status.state == CaptureWorkerState::kRefused) {
      WarnInto(record_.end_warnings,
               WithDetail(NameOf(status) + " could not take part", status.detail));
    } else {
      WarnInto(record_.end_warnings,
               WithDetail(NameOf(status) + " was lost while recording", status.detail));
    }
  }
  return all_delivered;
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
