// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_arming.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Where a session takes "now" from.
struct SessionTime {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  uint64_t reference_ns = 0;  // of the reference timescale
};

// One capture from its start to its end:
//
//   arming --every agent has answered, or was waited long enough--> recording, if enough are armed
//        \-- too few, or told to stop --> not begun
//   recording --stop, or over--> stopping --every agent finished--> complete
//                                      \-- an agent vanished, a worker could not deliver,
//                                          or none matched --> incomplete
//
// It ends without an agent that is gone, but stays open for it: what that agent still brings is
// taken, and when it has finished, incomplete can turn into complete.
//
// Knows which agents take part and what came of each worker. A plain state machine without I/O;
// time is passed in and never asked for. One sequence.
class CaptureSession {
 public:
  // A capture that somebody has just asked for.
  CaptureSession(const CaptureId& id, const CaptureSpec& spec, const SessionTime& now);
  // A capture that was going on when the aggregator stopped; its agents have yet to reconnect. One
  // that was arming asks all of them anew.
  CaptureSession(CaptureRecord record, const SessionTime& now);

  const CaptureRecord& record() const { return record_; }
  CaptureState state() const { return record_.state; }
  bool ended() const { return HasEnded(record_.state); }

  // Whether the capture concerns this agent at all.
  bool Selects(const AgentInfo& agent) const;
  // Workers of an instance that take part and have not come to an end.
  std::vector<WorkerIdentity> ActiveWorkers(std::string_view instance_id) const;
  // Whether it has a part that is not over; of a capture that has ended, too.
  bool Awaits(std::string_view agent_id) const;
  // Ended, and it awaits somebody.
  bool IsOpen() const;
  // Waits for an agent, or for all, no longer.
  void GiveUpOn(std::string_view agent_id);
  void GiveUpOnAll();
  // Whether it has been open for limits::kLateAgentMaxNs.
  bool IsOverdue(const SessionTime& now) const;

  // The agent is connected. True if it is to be told: it takes part already, or the capture is
  // arming or recording and selects it.
  bool Join(const AgentInfo& agent, const SessionTime& now);
  // True if it has a part.
  bool Leave(std::string_view agent_id, const SessionTime& now);

  // The judgement waits for this agent to come, until then at the most.
  void Await(const std::string& agent_id, uint64_t until_monotonic_ns);

  // What exists while it arms and records, whether it is to be recorded or not: those without a
  // part are remembered with the reason. True if something changed.
  bool NoteWorker(const std::string& agent_id, const WorkerInfo& worker);
  // It was here and is not now. Those of its workers that are selected cannot take part.
  void NoteAwayAgent(const KnownAgent& agent, const SessionTime& now);
  // Its agent says that it has ended: had it recorded, that would have been said before.
  bool NoteWorkerGone(const WorkerIdentity& worker);

  // What agents report; ignored from agents that take no part. True if something changed that
  // should be remembered soon.
  bool OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                      const SessionTime& now);
  bool OnAgentStatus(std::string_view agent_id, uint32_t matched_workers, bool finished,
                     const SessionTime& now);

  // True while it arms and nothing is left to wait for: Judge is due, then Begin or NotBegin.
  bool IsJudgementDue(const SessionTime& now) const;
  // Says of every selected worker that nobody has answered for why it is not armed.
  ArmingTally Judge();
  uint64_t SlowestAnswerNs() const;
  // From now on it records, or will when the moment comes.
  void Begin(const CaptureBegin& begin, const SessionTime& now);
  void NotBegin(const SessionTime& now, std::string why);
  // Of one that has begun by time: these executions are to be recorded.
  void SetExecutions(uint64_t first, uint64_t last);

  // Begins to stop, unless it has; recording ends in `in_ns`.
  void Stop(const SessionTime& now, uint64_t in_ns);
  // True when it is over by time: Stop is due, so long ahead that agents hear of it.
  bool IsStopDue(const SessionTime& now) const;
  // How long until it is over by time; 0: it is.
  uint64_t StopInNs(const SessionTime& now) const;

  // True when it is stopping and nothing is left to wait for: End is due.
  bool IsEndDue(const SessionTime& now) const;
  // Ends it, complete or not, or, where it has ended, judges it anew. `what_there_was` describes
  // the workers that exist, for the warning of a capture that matched none.
  void End(const SessionTime& now, std::string_view what_there_was);

  // Adds a warning once; beyond limits::kCaptureWarningsMax it is dropped and counted in the last.
  void Warn(std::string warning);

 private:
  // What is only of use while the capture runs.
  struct Presence {
    bool connected = false;
    uint64_t changed_monotonic_ns = 0;   // when it came or went
    uint64_t heard_monotonic_ns = 0;     // its last report about this capture
    uint64_t answered_monotonic_ns = 0;  // that it has armed what it can; 0: not
    size_t part = 0;                     // index into record_.agents
  };

  void SetDue(const SessionTime& now);
  // Its time counts from the first execution that a worker records.
  bool CountsFromExecution() const;
  void NoteExecution(const CaptureWorkerStatus& status, const SessionTime& now);
  CaptureAgentPart* FindPart(std::string_view agent_id);
  const CaptureAgentPart* FindPart(std::string_view agent_id) const;
  const Presence* PresenceOf(const WorkerIdentity& worker) const;  // of its instance's agent
  void IndexWorkers();
  CaptureWorkerStatus* FindWorker(const WorkerIdentity& worker);
  CaptureWorkerStatus* AddWorker(CaptureWorkerStatus status);  // nullptr beyond the limit

  // The workers that exist while a capture runs and take no part in it.
  void IndexBystanders();
  // Takes a worker from those without a part and returns how it was.
  WorkerState RemoveBystander(const WorkerIdentity& worker);
  NonParticipant* FindBystander(const WorkerIdentity& worker);
  void AddBystander(NonParticipant bystander);
  CaptureObstacle BlockingReason(const NonParticipant& bystander) const;
  void AddParticipant(const NonParticipant& bystander, CaptureWorkerState state,
                      CaptureObstacle obstacle, std::string detail);
  void ForgetLost(std::string_view instance_id);
  // Selected workers of which agents that have finished never said anything are lost.
  void TakeInUnreported();

  // capture_end.cc
  bool IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const;
  bool MatchedNothing() const;
  void SayVanished(CaptureAgentPart& part);
  // False when a worker did not deliver all it read; says so.
  bool CheckWorkers();
  // False when it was by executions, and a worker recorded none of them; likewise.
  bool CheckExecutions();
  void WarnInto(std::vector<std::string>& warnings, std::string warning);

  CaptureRecord record_;
  std::map<std::string, Presence, std::less<>> presence_;  // by agent id
  // Index into record_.workers by worker and whether it stands for its instance's framework files.
  std::map<std::pair<WorkerIdentity, bool>, size_t> worker_at_;
  std::map<WorkerIdentity, size_t> bystander_at_;             // index into record_.bystanders
  std::map<WorkerIdentity, WorkerState> states_;              // of the bystanders, as they are now
  std::map<std::string, std::string, std::less<>> agent_of_;  // by instance id
  uint64_t arming_monotonic_ns_ = 0;                          // since when
  uint64_t arm_due_monotonic_ns_ = 0;
  bool awaits_absent_ = false;                  // arms anew: agents that are not connected will be
  std::set<std::string, std::less<>> awaited_;  // by agent id: without a part, and to come
  uint64_t stop_due_monotonic_ns_ = 0;          // 0: until told
  uint64_t stop_lead_ns_ = 0;                   // so long before, agents are told
  uint64_t stopped_monotonic_ns_ = 0;
  size_t warnings_dropped_ = 0;
};

}  // namespace neurontrace
