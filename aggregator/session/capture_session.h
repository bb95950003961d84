// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/agent_info.h"
#include "trace/capture_record.h"
#include "trace/capture_spec.h"
#include "trace/ids.h"
#include "trace/worker_info.h"

namespace neurontrace {

// Where a session takes "now" from.
struct SessionTime {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
};

// One capture from its start to its end:
//
//   recording --stop, or duration over--> stopping --every agent finished--> complete
//                                            \-- an agent vanished, a worker could not deliver,
//                                                or none matched --> incomplete
//
// It ends without an agent that is gone, but stays open for it: what that agent still brings is
// taken, and when it has finished, incomplete can turn into complete.
//
// Knows which agents take part and what came of each worker. A plain state machine without I/O;
// time is passed in and never asked for. One sequence.
class CaptureSession {
 public:
  // A capture that starts now.
  CaptureSession(const CaptureId& id, const CaptureSpec& spec, const SessionTime& now);
  // A capture that was running when the aggregator stopped; its agents have yet to reconnect.
  CaptureSession(CaptureRecord record, const SessionTime& now);

  const CaptureRecord& record() const { return record_; }
  CaptureState state() const { return record_.state; }
  bool ended() const { return HasEnded(record_.state); }

  // Whether the capture concerns this agent at all.
  bool Selects(const AgentInfo& agent) const;
  // Workers of an instance that take part and have not come to an end.
  std::vector<WorkerIdentity> WorkersGoingOn(std::string_view instance_id) const;
  // Whether it has a part that is not over; of a capture that has ended, too.
  bool Awaits(std::string_view agent_id) const;
  // Ended, and it awaits somebody.
  bool IsOpen() const;
  // Waits for an agent, or for all, no longer.
  void GiveUpOn(std::string_view agent_id);
  void GiveUpOnAll();
  // Whether it has been open for limits::kLateAgentMaxNs.
  bool IsOverdue(const SessionTime& now) const;

  // The agent is connected. True if it is to be told to record (or to stop, when stopping): it
  // takes part already, or the capture is recording and selects it.
  bool Join(const AgentInfo& agent, const SessionTime& now);
  // True if it has a part.
  bool Leave(std::string_view agent_id, const SessionTime& now);

  // What exists while it records, whether it is to be recorded or not: those without a part are
  // remembered with the reason. True if something changed.
  bool NoteWorker(const std::string& agent_id, const WorkerInfo& worker);
  void NoteAwayAgent(const AgentInfo& agent);
  // Its agent says that it has ended: had it recorded, that would have been said before.
  bool NoteWorkerGone(const WorkerIdentity& worker);

  // What agents report; ignored from agents that take no part. True if something changed that
  // should be remembered at once.
  bool OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                      const SessionTime& now);
  bool OnAgentStatus(std::string_view agent_id, uint32_t matched_workers, bool finished,
                     const SessionTime& now);

  // Begins to stop, unless it has.
  void Stop(const SessionTime& now);

  // True when the duration is over and Stop is due.
  bool IsStopDue(const SessionTime& now) const;

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
    uint64_t changed_monotonic_ns = 0;  // when it came or went
    uint64_t heard_monotonic_ns = 0;    // its last report about this capture
  };

  CaptureAgentPart* FindPart(std::string_view agent_id);
  const CaptureAgentPart* FindPart(std::string_view agent_id) const;
  bool IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const;
  bool MatchedNothing() const;
  void SayVanished(CaptureAgentPart& part);
  // Takes a worker from those without a part and returns how it was.
  WorkerState RemoveBystander(const WorkerIdentity& worker);
  CaptureBystander* FindBystander(const WorkerIdentity& worker);
  void AddBystander(CaptureBystander bystander);
  // Selected workers of which agents that have finished never said anything are lost.
  void TakeInUnreported();
  // False when a worker did not deliver all it read; says so.
  bool CheckWorkers();
  void WarnInto(std::vector<std::string>& warnings, std::string warning);

  CaptureRecord record_;
  std::map<std::string, Presence, std::less<>> presence_;  // by agent id
  // Index into record_.workers by worker and whether it stands for its instance's framework files.
  std::map<std::pair<WorkerIdentity, bool>, size_t> worker_at_;
  uint64_t stop_due_monotonic_ns_ = 0;  // 0: until told
  uint64_t stopped_monotonic_ns_ = 0;
  size_t warnings_dropped_ = 0;
};

}  // namespace neurontrace
