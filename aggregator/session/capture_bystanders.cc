// SPDX-License-Identifier: Apache-2.0
// The workers that exist while a capture goes on and have no part in it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "aggregator/session/capture_session.h"
#include "aggregator/session/worker_obstacle.h"
#include "base/time_units.h"
#include "trace/capture_limits.h"
#include "trace/capture_selection.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Selected, and nobody has said why it does not record.
bool IsUnexplained(const CaptureBystander& bystander) {
  return bystander.reason == BystanderReason::kNotReported && bystander.detail.empty();
}

// What stands in the way of a worker of which its agent has said nothing else.
std::string DetailOf(CaptureObstacle obstacle) {
  switch (obstacle) {
    case CaptureObstacle::kOtherProfiler:
      return "another profiler is at work in it";
    case CaptureObstacle::kRuntimeTooOld:
      return "its runtime cannot be traced this way";
    case CaptureObstacle::kNoTap:
      return "it uses the runtime and was started without the tap: LD_PRELOAD "
             "libneurontrace_tap.so";
    case CaptureObstacle::kNotInitialised:
      return "it has not called nrt_init yet";
    case CaptureObstacle::kEnded:
      return "it has closed the runtime";
    case CaptureObstacle::kRuntimeRefused:
      return "its runtime has refused to trace";
    case CaptureObstacle::kNotArmed:
      return "its agent is of an earlier version, which cannot do this: update it";
    default:
      return "";
  }
}

}  // namespace

void CaptureSession::IndexBystanders() {
  bystander_at_.clear();
  for (size_t i = 0; i < record_.bystanders.size(); ++i) {
    bystander_at_[record_.bystanders[i].worker] = i;
  }
}

CaptureBystander* CaptureSession::FindBystander(const WorkerIdentity& worker) {
  const auto it = bystander_at_.find(worker);
  return it == bystander_at_.end() ? nullptr : &record_.bystanders[it->second];
}

void CaptureSession::AddBystander(CaptureBystander bystander) {
  if (record_.bystanders.size() < limits::kCaptureBystandersMax) {
    bystander_at_[bystander.worker] = record_.bystanders.size();
    record_.bystanders.push_back(std::move(bystander));
  } else {
    Warn(fmt::format("more than {} workers have no part in it: further ones are not named",
                     limits::kCaptureBystandersMax));
  }
}

WorkerState CaptureSession::RemoveBystander(const WorkerIdentity& worker) {
  states_.erase(worker);
  const auto it = bystander_at_.find(worker);
  if (it == bystander_at_.end()) return WorkerState::kUnspecified;
  const size_t index = it->second;
  const WorkerState state = record_.bystanders[index].state;
  bystander_at_.erase(it);
  if (index + 1 != record_.bystanders.size()) {
    record_.bystanders[index] = std::move(record_.bystanders.back());
    bystander_at_[record_.bystanders[index].worker] = index;
  }
  record_.bystanders.pop_back();
  return state;
}

CaptureObstacle CaptureSession::WhatKeeps(const CaptureBystander& bystander) const {
  const auto state = states_.find(bystander.worker);
  if (state != states_.end() && IsObstacle(state->second)) return ObstacleOf(state->second);
  // Its agent has no part, as it would record what is to be held or counted alone.
  const bool is_of_newer =
      record_.spec.mode != CaptureMode::kStream && record_.spec.mode != CaptureMode::kContinuous;
  const bool has_part = presence_.contains(bystander.agent_id);
  return is_of_newer && !has_part ? CaptureObstacle::kNotArmed : CaptureObstacle::kNone;
}

void CaptureSession::TakeIn(const CaptureBystander& bystander, CaptureWorkerState state,
                            CaptureObstacle obstacle, std::string detail) {
  CaptureWorkerStatus status{.capture_id = record_.id,
                             .worker = bystander.worker,
                             .state = state,
                             .detail = detail.empty() ? DetailOf(obstacle) : std::move(detail),
                             .obstacle = obstacle};
  status.worker_state = RemoveBystander(status.worker);
  AddWorker(std::move(status));
}

bool CaptureSession::NoteWorker(const std::string& agent_id, const WorkerInfo& worker) {
  const bool is_arming = record_.state == CaptureState::kArming;
  if (!is_arming && record_.state != CaptureState::kRecording) return false;
  if (CaptureWorkerStatus* const status = FindWorker(worker.identity)) {
    const WorkerState before = status->worker_state;
    status->worker_state = Obstacle(before, worker.state);
    return status->worker_state != before;
  }
  CaptureBystander noted{.worker = worker.identity,
                         .agent_id = agent_id,
                         .reason = BystanderReason::kNotSelected,
                         .state = Obstacle(WorkerState::kUnspecified, worker.state),
                         .detail = WhyNotSelected(record_.spec, worker)};
  if (noted.detail.empty()) noted.reason = BystanderReason::kNotReported;
  states_[worker.identity] = worker.state;
  CaptureBystander* const known = FindBystander(worker.identity);
  if (known != nullptr) {
    noted.state = Obstacle(known->state, worker.state);
    if (*known == noted) return false;
    *known = noted;
  } else {
    AddBystander(noted);
  }
  // Nobody will speak for it.
  const CaptureObstacle keeps = WhatKeeps(noted);
  const bool is_mute = keeps == CaptureObstacle::kNoTap || keeps == CaptureObstacle::kNotArmed;
  if (is_mute && IsUnexplained(noted)) TakeIn(noted, CaptureWorkerState::kRefused, keeps, "");
  return true;
}

void CaptureSession::NoteAwayAgent(const KnownAgent& agent, const SessionTime& now) {
  const uint64_t away_ns = now.realtime_ns - std::min(now.realtime_ns, agent.last_seen_realtime_ns);
  const std::string detail = fmt::format("its agent {} disconnected {} s ago", agent.info.agent_id,
                                         away_ns / kNsPerSecond);
  const auto lose = [&](const WorkerIdentity& worker) {
    AddWorker({.capture_id = record_.id,
               .worker = worker,
               .state = CaptureWorkerState::kRefused,
               .detail = detail,
               .obstacle = CaptureObstacle::kAgentLost});
  };
  if (away_ns <= limits::kAgentLostForNs && !agent.last_workers.empty()) {
    for (const auto& [identity, worker] : agent.last_workers) {
      if (neurontrace::Selects(record_.spec, worker)) lose(identity);
    }
    return;
  }
  if (!record_.spec.instance_ids.empty()) {
    lose({.instance_id = agent.info.instance_id});
    return;
  }
  AddBystander({.worker = {.instance_id = agent.info.instance_id},
                .agent_id = agent.info.agent_id,
                .reason = BystanderReason::kAgentAway});
}

// Those that were away are spoken for again.
void CaptureSession::ForgetLost(std::string_view instance_id) {
  const size_t before = record_.workers.size();
  std::erase_if(record_.workers, [&](const CaptureWorkerStatus& status) {
    return status.obstacle == CaptureObstacle::kAgentLost &&
           status.state == CaptureWorkerState::kRefused && status.worker.instance_id == instance_id;
  });
  if (record_.workers.size() != before) IndexWorkers();
  for (CaptureWorkerStatus& status : record_.workers) {
    if (status.obstacle == CaptureObstacle::kAgentLost &&
        status.worker.instance_id == instance_id) {
      status.obstacle = CaptureObstacle::kNone;
    }
  }
}

bool CaptureSession::NoteWorkerGone(const WorkerIdentity& worker) {
  if (ended()) return false;
  states_.erase(worker);
  CaptureWorkerStatus* const status = FindWorker(worker);
  if (status != nullptr && status->state == CaptureWorkerState::kStarting &&
      status->obstacle == CaptureObstacle::kNoAnswer) {
    status->state = CaptureWorkerState::kRefused;
    status->obstacle = CaptureObstacle::kEnded;
    status->detail = "it ended before it said that it was armed";
    return true;
  }
  CaptureBystander* const bystander = FindBystander(worker);
  if (bystander == nullptr || !IsUnexplained(*bystander)) return false;
  bystander->detail = "it ended before it was asked to record";
  return true;
}

void CaptureSession::TakeInUnreported() {
  const std::vector<CaptureBystander> bystanders = record_.bystanders;
  for (const CaptureBystander& bystander : bystanders) {
    if (!IsUnexplained(bystander)) continue;
    if (const CaptureObstacle obstacle = WhatKeeps(bystander); obstacle != CaptureObstacle::kNone) {
      TakeIn(bystander, CaptureWorkerState::kRefused, obstacle, "");
      continue;
    }
    const auto agent = agent_of_.find(bystander.worker.instance_id);
    if (agent == agent_of_.end() || !FindPart(agent->second)->finished) continue;
    TakeIn(bystander, CaptureWorkerState::kLost, CaptureObstacle::kAgentLost,
           "its agent was asked to record it, and its successor knows nothing of it");
  }
}

}  // namespace neurontrace
