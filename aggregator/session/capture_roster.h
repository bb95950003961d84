// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The record of a capture, with indexes by which its agents, its workers and the workers without a
// part in it are found. Keeps the limits of the record. A plain value; one sequence.
class CaptureRoster {
 public:
  CaptureRoster() = default;
  explicit CaptureRoster(CaptureRecord record);

  // Parts, workers and non-participants are added and removed by the functions below alone.
  const CaptureRecord& record() const { return record_; }
  CaptureRecord& record() { return record_; }

  // Returns the part of an agent, or of the agent of a worker's instance; nullptr: it has none.
  CaptureAgentPart* FindPart(std::string_view agent_id);
  const CaptureAgentPart* FindPart(std::string_view agent_id) const;
  const CaptureAgentPart* PartOf(const WorkerIdentity& worker) const;
  CaptureAgentPart& AddPart(const AgentInfo& agent);

  // Returns the status of a worker, or of the framework files of its instance; nullptr: there is
  // none.
  CaptureWorkerStatus* FindWorker(const WorkerIdentity& worker, bool framework = false);
  // Returns nullptr, and adds a warning, beyond limits::kCaptureWorkersMax.
  CaptureWorkerStatus* AddWorker(CaptureWorkerStatus status);
  // Forgets that the workers of an instance were lost with their agent, which has returned.
  void ForgetLost(std::string_view instance_id);

  NonParticipant* FindNonParticipant(const WorkerIdentity& worker);
  // Adds a warning instead beyond limits::kCaptureBystandersMax.
  void AddNonParticipant(NonParticipant bystander);
  // Returns the state that was recorded; kUnspecified if the worker was none.
  WorkerState RemoveNonParticipant(const WorkerIdentity& worker);
  // Records the state of a worker without a part as it is now, or that it is gone.
  void SetState(const WorkerIdentity& worker, WorkerState state) { states_[worker] = state; }
  void ForgetState(const WorkerIdentity& worker) { states_.erase(worker); }
  // Returns why a selected worker without a part cannot record; kNone if nothing is known.
  CaptureObstacle BlockingReason(const NonParticipant& bystander) const;
  // Makes a worker without a part one that takes part. An empty `detail` describes the obstacle.
  void AddParticipant(const NonParticipant& bystander, CaptureWorkerState state,
                      CaptureObstacle obstacle, std::string detail);

  // Adds a warning once. Beyond limits::kCaptureWarningsMax, the last warning counts those that
  // were dropped. A warning at the end is one of the judgement that a later one replaces.
  void Warn(std::string warning) { AddWarning(record_.warnings, std::move(warning)); }
  void WarnAtEnd(std::string warning) { AddWarning(record_.end_warnings, std::move(warning)); }

 private:
  void IndexWorkers();
  void AddWarning(std::vector<std::string>& warnings, std::string warning);

  CaptureRecord record_;
  std::map<std::string, size_t, std::less<>> part_at_;        // by agent id: index of its part
  std::map<std::string, std::string, std::less<>> agent_of_;  // agent id by instance id
  // Index into record_.workers by worker and whether the status is of framework files.
  std::map<std::pair<WorkerIdentity, bool>, size_t> worker_at_;
  std::map<WorkerIdentity, size_t> bystander_at_;  // index into record_.bystanders
  std::map<WorkerIdentity, WorkerState> states_;   // of the bystanders, as they are now
  size_t warnings_dropped_ = 0;
};

// Returns whether the worker is selected and nothing says why it does not record.
bool IsUnexplained(const NonParticipant& bystander);

// Returns the state to remember for a worker: the last one in which it could not record. The end of
// its process does not replace an earlier reason.
WorkerState KeepObstacle(WorkerState known, WorkerState now);

}  // namespace neurontrace
