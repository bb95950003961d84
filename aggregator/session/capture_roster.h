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

// The record of a capture with indexes of its agents, its workers and the workers without a part in
// it. Keeps the record within its limits. A plain value, copied with its session before each
// decision; one sequence.
class CaptureRoster {
 public:
  CaptureRoster() = default;
  explicit CaptureRoster(CaptureRecord record);

  // Returns the record. Other fields may be changed directly; agents, workers and non-participants
  // are added and removed only by the functions below, which maintain the indexes.
  const CaptureRecord& record() const { return record_; }
  CaptureRecord& record() { return record_; }

  // Returns the part of an agent, or of the agent of a worker's instance; nullptr if it has none.
  // Pointers are valid until the next addition or removal of the same kind.
  CaptureAgentPart* FindPart(std::string_view agent_id);
  const CaptureAgentPart* FindPart(std::string_view agent_id) const;
  const CaptureAgentPart* PartOf(const WorkerIdentity& worker) const;
  // Adds an agent that has no part yet.
  CaptureAgentPart& AddPart(const AgentInfo& agent);

  // Returns the status of a worker, or of the framework files of its instance; nullptr if there is
  // none.
  CaptureWorkerStatus* FindWorker(const WorkerIdentity& worker, bool framework = false);
  // Returns nullptr, and adds a warning, beyond limits::kCaptureWorkersMax.
  CaptureWorkerStatus* AddWorker(CaptureWorkerStatus status);
  // Called when an agent returns: its instance's workers no longer count as lost with it.
  void ForgetLost(std::string_view instance_id);

  NonParticipant* FindNonParticipant(const WorkerIdentity& worker);
  // Beyond limits::kCaptureNonParticipantsMax, adds a warning instead.
  void AddNonParticipant(NonParticipant non_participant);
  // Returns the recorded state; kUnspecified if the worker was no non-participant.
  WorkerState RemoveNonParticipant(const WorkerIdentity& worker);
  // Note the current state of a worker without a part, or that it is gone. Not stored.
  void SetState(const WorkerIdentity& worker, WorkerState state) { states_[worker] = state; }
  void ForgetState(const WorkerIdentity& worker) { states_.erase(worker); }
  // Returns why a selected worker without a part cannot record; kNone if no reason is known.
  CaptureObstacle BlockingReason(const NonParticipant& non_participant) const;
  // Turns a worker without a part into one that takes part. If `detail` is empty, a text that
  // describes the obstacle is used.
  void AddParticipant(const NonParticipant& non_participant, CaptureWorkerState state,
                      CaptureObstacle obstacle, std::string detail);

  // Adds a warning unless it is there already. Beyond limits::kCaptureWarningsMax, the last one
  // counts those that were dropped. End warnings belong to a judgement, and the next judgement
  // replaces them.
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
  std::map<WorkerIdentity, size_t> non_participant_at_;  // index into record_.non_participants
  std::map<WorkerIdentity, WorkerState> states_;         // of the non-participants, current
  size_t warnings_dropped_ = 0;
};

// Returns whether the worker is selected and no reason is recorded why it does not take part.
bool IsUnexplained(const NonParticipant& non_participant);

// Returns the state to remember for a worker: the latest in which it could not record. The end of
// its process does not replace an earlier reason, which explains more.
WorkerState MergeObstacle(WorkerState known, WorkerState now);

}  // namespace neurontrace
