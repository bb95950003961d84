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
#include "aggregator/session/capture_roster.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The time of one call, which a session is told.
struct SessionTime {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  uint64_t reference_ns = 0;  // of the reference timescale
};

// One capture from its start to its end:
//
//   arming --every agent has answered, or the wait was long enough--> recording, if enough are
//   armed
//        \-- too few, or told to stop --> not begun
//   recording --stop, or over--> stopping --every agent finished--> complete
//                                      \-- an agent vanished, a worker could not deliver,
//                                          or none matched --> incomplete
//
// It ends without an agent that is gone, but stays open for it: data that the agent still delivers
// is accepted, and when the agent has finished, incomplete can become complete.
//
// Knows which agents take part and the state of each worker. A plain state machine without I/O;
// time is passed in. One sequence.
class CaptureSession {
 public:
  // A capture that an operator or a trigger has just asked for.
  CaptureSession(const CaptureId& id, const CaptureSpec& spec, const SessionTime& now);
  // A capture that was running when the aggregator stopped; its agents have yet to reconnect. If it
  // was arming, all of them are asked again.
  CaptureSession(CaptureRecord stored, const SessionTime& now);

  const CaptureRecord& record() const { return roster_.record(); }
  CaptureState state() const { return record().state; }
  bool ended() const { return HasEnded(record().state); }

  // Returns whether the capture selects the agent's instance.
  bool Selects(const AgentInfo& agent) const;
  // Returns the workers of an instance that take part and have not finished.
  std::vector<WorkerIdentity> ActiveWorkers(std::string_view instance_id) const;
  // Returns whether the agent has a part that is not over, also in a capture that has ended.
  bool Awaits(std::string_view agent_id) const;
  // Returns whether the capture has ended and awaits an agent.
  bool IsOpen() const;
  // Stops waiting for one agent, or for all.
  void GiveUpOn(std::string_view agent_id);
  void GiveUpOnAll();
  // Returns whether the capture has been open for limits::kLateAgentMaxNs.
  bool IsOverdue(const SessionTime& now) const;

  // The agent has connected. Returns whether it is to be told of the capture: it takes part
  // already, or the capture is arming or recording and selects it.
  bool Join(const AgentInfo& agent, const SessionTime& now);
  // The agent has disconnected. Returns whether it has a part.
  bool Leave(std::string_view agent_id, const SessionTime& now);

  // Makes the judgement wait for an agent that is to return, until then at most.
  void Await(const std::string& agent_id, uint64_t until_monotonic_ns);

  // Records a worker that exists while the capture arms or records, selected or not; a worker
  // without a part is stored with the reason. Returns whether the record changed.
  bool RecordWorker(const std::string& agent_id, const WorkerInfo& worker);
  // Records an agent that has left: its selected workers cannot take part.
  void RecordAwayAgent(const KnownAgent& agent, const SessionTime& now);
  // Records that a worker has ended without having recorded. Returns whether the record changed.
  bool RecordWorkerGone(const WorkerIdentity& worker);

  // Handles reports of agents; ignores those of agents without a part. Returns whether something
  // changed that should be stored soon.
  bool OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                      const SessionTime& now);
  bool OnAgentStatus(std::string_view agent_id, uint32_t matched_workers, bool finished,
                     const SessionTime& now);

  // Returns true while the capture arms and nothing is left to wait for: Judge is due, then Begin
  // or NotBegin.
  bool IsJudgementDue(const SessionTime& now) const;
  // Gives every selected worker without an answer the reason why it is not armed.
  ArmingTally Judge();
  uint64_t SlowestAnswerNs() const;
  // The capture records, or will as soon as the moment in `begin` comes.
  void Begin(const CaptureBegin& begin, const SessionTime& now);
  void NotBegin(const SessionTime& now, std::string why);
  // Sets the executions of a capture that has begun by time.
  void SetExecutions(uint64_t first, uint64_t last);

  // Begins to stop unless it is stopping already; recording ends in `in_ns`.
  void Stop(const SessionTime& now, uint64_t in_ns);
  // Returns true when the capture is over by time, and Stop is due. That is so long before its end
  // that agents are told in time.
  bool IsStopDue(const SessionTime& now) const;
  // Returns how long it is until the capture is over by time; 0: it is over.
  uint64_t StopInNs(const SessionTime& now) const;

  // Returns true when the capture is stopping and nothing is left to wait for: End is due.
  bool IsEndDue(const SessionTime& now) const;
  // Ends the capture, complete or not; judges it again if it has ended. See JudgeEnd for
  // `inventory`.
  void End(const SessionTime& now, std::string_view inventory);

  // Adds a warning once; see CaptureRoster.
  void Warn(std::string warning) { roster_.Warn(std::move(warning)); }

 private:
  // What matters about an agent with a part only while the capture runs.
  struct Presence {
    bool connected = false;
    uint64_t changed_monotonic_ns = 0;   // when it connected or disconnected
    uint64_t heard_monotonic_ns = 0;     // its last report about this capture
    uint64_t answered_monotonic_ns = 0;  // when it had armed what it can; 0: it has not
  };

  void SetDue(const SessionTime& now);
  // Returns whether the duration counts from the first execution that a worker records.
  bool CountsFromExecution() const;
  void RecordExecution(const CaptureWorkerStatus& status, const SessionTime& now);
  const Presence* PresenceOf(const WorkerIdentity& worker) const;  // of its instance's agent
  Presence& PresenceOf(std::string_view agent_id);                 // of an agent that has a part
  bool IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const;

  CaptureRoster roster_;
  std::map<std::string, Presence, std::less<>> presence_;  // by agent id: all that have a part
  uint64_t arming_monotonic_ns_ = 0;                       // since when it arms
  uint64_t arm_due_monotonic_ns_ = 0;
  bool awaits_absent_ = false;  // it arms again after a restart: agents that are away are awaited
  std::set<std::string, std::less<>> awaited_;  // by agent id: without a part, and to return
  uint64_t stop_due_monotonic_ns_ = 0;          // 0: until it is told to stop
  uint64_t stop_lead_ns_ = 0;                   // how long before agents are told
  uint64_t stopped_monotonic_ns_ = 0;
};

}  // namespace neurontrace
