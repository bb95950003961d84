// SPDX-License-Identifier: Apache-2.0
// The workers that exist while a capture runs and have no part in it.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "aggregator/session/capture_session.h"
#include "aggregator/session/worker_obstacle.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Why the capture does not select a worker; empty where it does.
std::string WhyLeftOut(const CaptureSpec& spec, const WorkerInfo& worker) {
  const auto& ids = spec.instance_ids;
  if (!ids.empty() && std::find(ids.begin(), ids.end(), worker.identity.instance_id) == ids.end()) {
    return fmt::format("the capture does not select instance {}", worker.identity.instance_id);
  }
  if (!spec.job.empty() && spec.job != worker.job) {
    return fmt::format("the capture selects job {}, this is {}", spec.job,
                       worker.job.empty() ? "of no known job" : "job " + worker.job);
  }
  if (!spec.include_neuron) return "the capture leaves the runtime's events out";
  const auto has_core = [&](uint32_t core) {
    return std::any_of(worker.cores.begin(), worker.cores.end(),
                       [&](const CoreInfo& info) { return info.nc_idx == core; });
  };
  const auto& cores = spec.neuron_cores;
  if (!cores.empty() && !worker.cores.empty() &&
      std::none_of(cores.begin(), cores.end(), has_core)) {
    return "it has none of the cores that the capture selects";
  }
  return "";
}

// Selected, and nobody has said why it does not record.
bool IsUnexplained(const CaptureBystander& bystander) {
  return bystander.reason == BystanderReason::kNotReported && bystander.detail.empty();
}

}  // namespace

CaptureBystander* CaptureSession::FindBystander(const WorkerIdentity& worker) {
  const auto it = std::find_if(record_.bystanders.begin(), record_.bystanders.end(),
                               [&](const auto& bystander) { return bystander.worker == worker; });
  return it == record_.bystanders.end() ? nullptr : &*it;
}

void CaptureSession::AddBystander(CaptureBystander bystander) {
  if (record_.bystanders.size() < limits::kCaptureBystandersMax) {
    record_.bystanders.push_back(std::move(bystander));
  } else {
    Warn(fmt::format("more than {} workers have no part in it: further ones are not named",
                     limits::kCaptureBystandersMax));
  }
}

WorkerState CaptureSession::RemoveBystander(const WorkerIdentity& worker) {
  CaptureBystander* const bystander = FindBystander(worker);
  if (bystander == nullptr) return WorkerState::kUnspecified;
  const WorkerState state = bystander->state;
  *bystander = std::move(record_.bystanders.back());
  record_.bystanders.pop_back();
  return state;
}

bool CaptureSession::NoteWorker(const std::string& agent_id, const WorkerInfo& worker) {
  if (record_.state != CaptureState::kRecording) return false;
  if (const auto it = worker_at_.find({worker.identity, false}); it != worker_at_.end()) {
    CaptureWorkerStatus& status = record_.workers[it->second];
    const WorkerState before = status.worker_state;
    status.worker_state = Obstacle(before, worker.state);
    return status.worker_state != before;
  }
  CaptureBystander noted{.worker = worker.identity,
                         .agent_id = agent_id,
                         .reason = BystanderReason::kNotSelected,
                         .state = Obstacle(WorkerState::kUnspecified, worker.state),
                         .detail = WhyLeftOut(record_.spec, worker)};
  if (noted.detail.empty()) noted.reason = BystanderReason::kNotReported;
  CaptureBystander* const known = FindBystander(worker.identity);
  if (known == nullptr) {
    AddBystander(std::move(noted));
    return true;
  }
  noted.state = Obstacle(known->state, worker.state);
  if (*known == noted) return false;
  *known = std::move(noted);
  return true;
}

void CaptureSession::NoteAwayAgent(const AgentInfo& agent) {
  AddBystander({.worker = {.instance_id = agent.instance_id},
                .agent_id = agent.agent_id,
                .reason = BystanderReason::kAgentAway});
}

bool CaptureSession::NoteWorkerGone(const WorkerIdentity& worker) {
  CaptureBystander* const bystander = FindBystander(worker);
  if (ended() || bystander == nullptr || !IsUnexplained(*bystander)) return false;
  bystander->detail = "it ended before it was asked to record";
  return true;
}

void CaptureSession::TakeInUnreported() {
  std::vector<WorkerIdentity> unreported;
  for (const CaptureBystander& bystander : record_.bystanders) {
    if (!IsUnexplained(bystander)) continue;
    const auto part = std::find_if(
        record_.agents.begin(), record_.agents.end(),
        [&](const auto& each) { return each.instance_id == bystander.worker.instance_id; });
    if (part == record_.agents.end() || !part->finished) continue;
    unreported.push_back(bystander.worker);
  }
  for (const WorkerIdentity& worker : unreported) {
    if (record_.workers.size() >= limits::kCaptureWorkersMax) return;
    CaptureWorkerStatus status{.capture_id = record_.id, .worker = worker};
    status.state = CaptureWorkerState::kLost;
    status.worker_state = RemoveBystander(worker);
    status.detail = "its agent was asked to record it, and its successor knows nothing of it";
    worker_at_[{worker, false}] = record_.workers.size();
    record_.workers.push_back(std::move(status));
  }
}

}  // namespace neurontrace
