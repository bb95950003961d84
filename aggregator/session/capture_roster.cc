// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {
namespace {

// Returns whether a worker in this state cannot record.
constexpr bool IsObstacle(WorkerState state) { return ObstacleOf(state) != CaptureObstacle::kNone; }

// Returns a text for an obstacle that no agent has described.
std::string DetailOf(CaptureObstacle obstacle) {
  switch (obstacle) {
    case CaptureObstacle::kOtherProfiler:
      return "another profiler is active in it";
    case CaptureObstacle::kRuntimeTooOld:
      return "its runtime cannot be traced this way";
    case CaptureObstacle::kNoTap:
      return "it uses the runtime without the tap; start it with LD_PRELOAD=libneurontrace_tap.so";
    case CaptureObstacle::kNotInitialised:
      return "it has not called nrt_init yet";
    case CaptureObstacle::kEnded:
      return "it has closed the runtime";
    case CaptureObstacle::kRuntimeRefused:
      return "its runtime refused to trace";
    case CaptureObstacle::kNotArmed:
      return "its agent's version does not support this; update the agent";
    default:
      return "";
  }
}

}  // namespace

bool IsUnexplained(const NonParticipant& non_participant) {
  return non_participant.reason == NonParticipantReason::kNotReported &&
         non_participant.detail.empty();
}

WorkerState MergeObstacle(WorkerState known, WorkerState now) {
  if (!IsObstacle(now) || (IsObstacle(known) && now == WorkerState::kClosed)) return known;
  return now;
}

// The indexes are not stored; they are built from the record.
CaptureRoster::CaptureRoster(CaptureRecord record) : record_(std::move(record)) {
  IndexWorkers();
  for (size_t i = 0; i < record_.non_participants.size(); ++i) {
    non_participant_at_[record_.non_participants[i].worker] = i;
  }
  for (size_t i = 0; i < record_.agents.size(); ++i) {
    part_at_[record_.agents[i].agent_id] = i;
    agent_of_[record_.agents[i].instance_id] = record_.agents[i].agent_id;
  }
}

// --- Agents --------------------------------------------------------------------------------------

CaptureAgentPart* CaptureRoster::FindPart(std::string_view agent_id) {
  const auto it = part_at_.find(agent_id);
  if (it == part_at_.end()) return nullptr;
  assert(it->second < record_.agents.size() && record_.agents[it->second].agent_id == agent_id);
  return &record_.agents[it->second];
}

const CaptureAgentPart* CaptureRoster::FindPart(std::string_view agent_id) const {
  return const_cast<CaptureRoster*>(this)->FindPart(agent_id);
}

const CaptureAgentPart* CaptureRoster::PartOf(const WorkerIdentity& worker) const {
  const auto agent = agent_of_.find(worker.instance_id);
  return agent == agent_of_.end() ? nullptr : FindPart(agent->second);
}

CaptureAgentPart& CaptureRoster::AddPart(const AgentInfo& agent) {
  assert(!part_at_.contains(agent.agent_id));
  part_at_[agent.agent_id] = record_.agents.size();
  agent_of_[agent.instance_id] = agent.agent_id;
  CaptureAgentPart& part = record_.agents.emplace_back();
  part.agent_id = agent.agent_id;
  part.instance_id = agent.instance_id;
  return part;
}

// --- Workers -------------------------------------------------------------------------------------

// Takes time proportional to the number of workers, so it is called only after removals.
void CaptureRoster::IndexWorkers() {
  worker_at_.clear();
  for (size_t i = 0; i < record_.workers.size(); ++i) {
    worker_at_[{record_.workers[i].worker, record_.workers[i].framework}] = i;
  }
}

CaptureWorkerStatus* CaptureRoster::FindWorker(const WorkerIdentity& worker, bool framework) {
  const auto it = worker_at_.find({worker, framework});
  if (it == worker_at_.end()) return nullptr;
  assert(it->second < record_.workers.size());
  CaptureWorkerStatus& status = record_.workers[it->second];
  assert(status.worker == worker && status.framework == framework);
  return &status;
}

// Requires that the worker has no status yet.
CaptureWorkerStatus* CaptureRoster::AddWorker(CaptureWorkerStatus status) {
  if (record_.workers.size() >= limits::kCaptureWorkersMax) {
    Warn(fmt::format("more than {} workers report; the status of further ones is not stored",
                     limits::kCaptureWorkersMax));
    return nullptr;
  }
  worker_at_[{status.worker, status.framework}] = record_.workers.size();
  return &record_.workers.emplace_back(std::move(status));
}

void CaptureRoster::ForgetLost(std::string_view instance_id) {
  const size_t before = record_.workers.size();
  std::erase_if(record_.workers, [&](const CaptureWorkerStatus& status) {
    return status.obstacle == CaptureObstacle::kAgentLost &&
           status.state == CaptureWorkerState::kRefused && status.worker.instance_id == instance_id;
  });
  // Erasing has moved the rest.
  if (record_.workers.size() != before) IndexWorkers();
  for (CaptureWorkerStatus& status : record_.workers) {
    if (status.obstacle == CaptureObstacle::kAgentLost &&
        status.worker.instance_id == instance_id) {
      status.obstacle = CaptureObstacle::kNone;
    }
  }
}

// --- Workers without a part ----------------------------------------------------------------------

NonParticipant* CaptureRoster::FindNonParticipant(const WorkerIdentity& worker) {
  const auto it = non_participant_at_.find(worker);
  if (it == non_participant_at_.end()) return nullptr;
  assert(it->second < record_.non_participants.size() &&
         record_.non_participants[it->second].worker == worker);
  return &record_.non_participants[it->second];
}

void CaptureRoster::AddNonParticipant(NonParticipant non_participant) {
  // Reaching this limit costs only an entry in a list, not the recording, so it is no reason to
  // refuse anything.
  if (record_.non_participants.size() < limits::kCaptureNonParticipantsMax) {
    non_participant_at_[non_participant.worker] = record_.non_participants.size();
    record_.non_participants.push_back(std::move(non_participant));
  } else {
    Warn(fmt::format("more than {} workers do not take part; further ones are not listed",
                     limits::kCaptureNonParticipantsMax));
  }
}

WorkerState CaptureRoster::RemoveNonParticipant(const WorkerIdentity& worker) {
  states_.erase(worker);
  const auto it = non_participant_at_.find(worker);
  if (it == non_participant_at_.end()) return WorkerState::kUnspecified;
  const size_t index = it->second;
  assert(index < record_.non_participants.size() &&
         record_.non_participants[index].worker == worker);
  const WorkerState state = record_.non_participants[index].state;
  non_participant_at_.erase(it);
  // The last one takes the free place; the order of non-participants has no meaning.
  if (index + 1 != record_.non_participants.size()) {
    record_.non_participants[index] = std::move(record_.non_participants.back());
    non_participant_at_[record_.non_participants[index].worker] = index;
  }
  record_.non_participants.pop_back();
  return state;
}

CaptureObstacle CaptureRoster::BlockingReason(const NonParticipant& non_participant) const {
  const auto state = states_.find(non_participant.worker);
  if (state != states_.end() && IsObstacle(state->second)) return ObstacleOf(state->second);
  // Agents of an earlier version get no part in these modes: they would record at once what is only
  // to be held or counted.
  const bool is_of_newer =
      record_.spec.mode != CaptureMode::kStream && record_.spec.mode != CaptureMode::kContinuous;
  const bool has_part = FindPart(non_participant.agent_id) != nullptr;
  return is_of_newer && !has_part ? CaptureObstacle::kNotArmed : CaptureObstacle::kNone;
}

void CaptureRoster::AddParticipant(const NonParticipant& non_participant, CaptureWorkerState state,
                                   CaptureObstacle obstacle, std::string detail) {
  CaptureWorkerStatus status{.capture_id = record_.id,
                             .worker = non_participant.worker,
                             .state = state,
                             .detail = detail.empty() ? DetailOf(obstacle) : std::move(detail),
                             .obstacle = obstacle};
  status.worker_state = RemoveNonParticipant(status.worker);
  AddWorker(std::move(status));
}

// Compares with every warning, whose number is limited. Repeated causes, such as a failing disk,
// thus use one entry.
void CaptureRoster::AddWarning(std::vector<std::string>& warnings, std::string warning) {
  if (std::find(warnings.begin(), warnings.end(), warning) != warnings.end()) return;
  if (warnings.size() + 1 < limits::kCaptureWarningsMax) {
    warnings.push_back(std::move(warning));
    return;
  }
  if (warnings.size() < limits::kCaptureWarningsMax) warnings.emplace_back();
  // The last place is reserved for the number of those that did not fit.
  warnings.back() = fmt::format("and {} more warnings", ++warnings_dropped_);
}

}  // namespace neurontrace
