// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_arming.h"
#include "aggregator/session/capture_roster.h"
#include "aggregator/session/capture_update.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The time of one call, passed in so that a session reads no clock.
struct SessionTime {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  uint64_t reference_ns = 0;  // on the reference timescale
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
// It can end without an agent that is gone, but stays open for it: data that the agent still
// delivers is accepted, and once the agent has finished, incomplete can become complete.
//
// Knows which agents take part and the state of each worker. A plain state machine without I/O;
// time is passed in. Copyable, so that a decision is made on a copy and adopted once it is stored.
// Used on the coordinator's sequence only.
class CaptureSession {
 public:
  // Creates a capture that an operator or a trigger has just requested.
  CaptureSession(const CaptureId& id, const CaptureSpec& spec, const SessionTime& now);
  // Restores a capture that was running when the aggregator stopped; its agents have yet to
  // reconnect. If it was arming, all of them are asked again.
  CaptureSession(CaptureRecord stored, const SessionTime& now);

  const CaptureRecord& record() const { return roster_.record(); }
  CaptureState state() const { return record().state; }
  bool ended() const { return HasEnded(record().state); }

  // Returns whether the capture selects the agent's instance.
  bool Selects(const AgentInfo& agent) const;
  // Returns the workers of an instance that have begun and not finished.
  std::vector<WorkerIdentity> ActiveWorkers(std::string_view instance_id) const;
  // Returns whether the agent has a part that is not finished nor given up, even if the capture
  // ended.
  bool Awaits(std::string_view agent_id) const;
  // Returns whether the capture has ended and still awaits an agent.
  bool IsOpen() const;
  // Stop waiting for one agent, or for all, to deliver what it still has.
  void GiveUpOn(std::string_view agent_id);
  void GiveUpOnAll();
  // Returns whether the capture has been open for limits::kLateAgentMaxNs.
  bool IsOverdue(const SessionTime& now) const;

  // Handles an agent that has connected. Returns whether it is to receive the capture's orders: it
  // takes part already, or the capture is arming or recording and selects it.
  bool Join(const AgentInfo& agent, const SessionTime& now);
  // Handles an agent that has disconnected. Returns whether it has a part.
  bool Leave(std::string_view agent_id, const SessionTime& now);

  // Delays the judgement for an agent that is expected to return, until this time at the latest.
  void Await(const std::string& agent_id, uint64_t until_monotonic_ns);

  // Records a worker that exists while the capture arms or records, selected or not. A worker
  // without a part is stored with the reason. Returns whether the record changed.
  bool RecordWorker(const std::string& agent_id, const WorkerInfo& worker);
  // Records an agent that has left recently: its selected workers cannot take part.
  void RecordAwayAgent(const KnownAgent& agent, const SessionTime& now);
  // Records the end of a worker that has not recorded. Returns whether the record changed.
  bool RecordWorkerGone(const WorkerIdentity& worker);

  // Handle reports of agents; those of agents without a part are ignored. Return whether anything
  // changed that should be stored soon, which counters alone are not.
  bool OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                      const SessionTime& now);
  bool OnAgentStatus(std::string_view agent_id, uint32_t matched_workers, bool finished,
                     const SessionTime& now);

  // Returns true while the capture arms and nothing is left to wait for. Judge is then due,
  // followed by Begin or NotBegin.
  bool IsEndCheckDue(const SessionTime& now) const;
  // Gives every selected worker without an answer the reason why it is not armed, and counts.
  ArmingTally Judge();
  // Returns how long the slowest agent took to answer; 0 if none has.
  uint64_t SlowestAnswerNs() const;
  // End the arming. Begin: the capture records, or will once the moment in `begin` comes. NotBegin:
  // it ends at once, and `why` becomes its warning.
  void Begin(const CaptureBegin& begin, const SessionTime& now);
  void NotBegin(const SessionTime& now, std::string why);
  // Sets the first and last execution of a capture that has begun by time.
  void SetExecutions(uint64_t first, uint64_t last);

  // Starts to stop, unless it is stopping already; recording ends in `in_ns`.
  void Stop(const SessionTime& now, uint64_t in_ns);
  // Returns true when the capture is over by time and Stop is due, which is early enough for agents
  // to get the order before the moment.
  bool IsStopDue(const SessionTime& now) const;
  // Returns how long it is until the capture is over by time; 0 if it is over.
  uint64_t StopInNs(const SessionTime& now) const;

  // Returns true when the capture is stopping and nothing is left to wait for; End is then due.
  bool IsEndDue(const SessionTime& now) const;
  // Ends the capture, complete or incomplete, or judges it again if it has ended. `inventory` as
  // for CheckEnd.
  void End(const SessionTime& now, std::string_view inventory);

  // Changes what people decide about the capture; see CaptureUpdate::ApplyTo.
  absl::StatusOr<bool> Update(const CaptureUpdate& update) {
    return update.ApplyTo(roster_.record());
  }

  // Adds a warning once; see CaptureRoster.
  void Warn(std::string warning) { roster_.Warn(std::move(warning)); }

 private:
  // What matters of an agent with a part only while the capture runs, and is not stored.
  struct Presence {
    bool connected = false;
    uint64_t changed_monotonic_ns = 0;   // when it connected or disconnected
    uint64_t reported_monotonic_ns = 0;  // its last report about this capture
    uint64_t answered_monotonic_ns = 0;  // when it had armed what it can; 0: not yet
  };

  // Computes when the capture is over by time, if it is limited by time.
  void SetDue(const SessionTime& now);
  // Returns whether the duration counts from the first execution that a worker records.
  bool CountsFromExecution() const;
  void RecordExecution(const CaptureWorkerStatus& status, const SessionTime& now);
  // Returns the presence of the agent of the worker's instance; nullptr without one.
  const Presence* PresenceOf(const WorkerIdentity& worker) const;
  Presence& PresenceOf(std::string_view agent_id);  // of an agent that has a part
  // Returns whether a stopping capture has waited long enough for the agent.
  bool IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const;

  CaptureRoster roster_;
  std::map<std::string, Presence, std::less<>> presence_;  // by agent id; all that have a part
  uint64_t arming_monotonic_ns_ = 0;                       // when it began to arm
  uint64_t arm_due_monotonic_ns_ = 0;
  // Arms again after a restart, and therefore waits for agents that are away.
  bool awaits_absent_ = false;
  std::set<std::string, std::less<>> awaited_;  // agent ids without a part, expected to return
  uint64_t stop_due_monotonic_ns_ = 0;          // 0: until it is told to stop
  uint64_t stop_lead_ns_ = 0;                   // how long before that agents get the order
  uint64_t stopped_monotonic_ns_ = 0;           // when recording ends, once it is stopping
};

}  // namespace neurontrace
