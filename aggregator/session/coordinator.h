// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_session.h"
#include "base/clock.h"
#include "base/random.h"
#include "trace/capture_record.h"
#include "trace/worker_info.h"

namespace neurontrace {

// What an agent is told to do.
struct StartOrder {
  CaptureId capture_id;
  CaptureSpec spec;
};
struct StopOrder {
  CaptureId capture_id;
};
using CaptureOrder = std::variant<StartOrder, StopOrder>;

// A capture that an agent which has just connected has a part in.
struct ResumedCapture {
  StartOrder start;
  bool stopping = false;
  std::vector<WorkerIdentity> workers;  // of this agent, which have not come to an end in it
};

// Where the coordinator's decisions go. All are called on its sequence and must not call back into
// it.
struct CoordinatorOutputs {
  std::function<void(const std::string& agent_id, ConnectionId, const CaptureOrder&)> send;
  // Remembers a capture; with `durable` it is on disk on return.
  std::function<absl::Status(const CaptureRecord&, bool durable)> persist;
  // The capture differs from what was last said. After its last change, one that has ended is no
  // longer among the running ones.
  std::function<void(const CaptureRecord&)> changed;
  std::function<void(const KnownAgent&)> agent_changed;  // came, or went
  std::function<void(const std::string& agent_id, const WorkerInfo&)> worker_changed;
};

// Brings agents and captures together: who is told what and when, and what is remembered. Does no
// I/O of its own. Everything happens on one sequence, which is the caller's to keep.
class Coordinator {
 public:
  Coordinator(const Clock& clock, Random& random, CoordinatorOutputs outputs);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // What an earlier run of the aggregator left, captures that have ended included: before anything
  // else.
  void RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                    uint64_t last_seen_realtime_ns);
  void RestoreCapture(CaptureRecord record);

  // Agents. Connect answers with the captures that concern the agent; see AgentRegistry::Connect
  // for its errors; UNAVAILABLE when it could not be remembered that it takes part in one. The
  // reports of a superseded connection are refused with ABORTED.
  absl::StatusOr<std::vector<ResumedCapture>> Connect(const AgentInfo& agent, ConnectionId from);
  void Disconnect(const std::string& agent_id, ConnectionId from);
  absl::Status OnHeartbeat(const std::string& agent_id, ConnectionId from);
  absl::Status OnWorker(const std::string& agent_id, ConnectionId from, const WorkerInfo& worker);
  absl::Status OnWorkerGone(const std::string& agent_id, ConnectionId from,
                            const WorkerIdentity& worker);
  absl::Status OnWorkerStatus(const std::string& agent_id, ConnectionId from,
                              const CaptureWorkerStatus& status);
  absl::Status OnAgentStatus(const std::string& agent_id, ConnectionId from,
                             const CaptureId& capture, uint32_t matched_workers, bool finished);

  // Operators. Start: RESOURCE_EXHAUSTED beyond limits::kCapturesRunningMax, or whatever persisting
  // returned; nothing has then begun. Stop: NOT_FOUND for a capture that is not running; one that
  // is stopping already is answered as it is; whatever persisting returned: it then goes on.
  absl::StatusOr<CaptureRecord> StartCapture(const CaptureSpec& spec);
  absl::StatusOr<CaptureRecord> StopCapture(const CaptureId& capture);

  // A capture that has ended is deleted: it is open for nobody any more.
  void Forget(const CaptureId& capture);

  // Lets time pass: durations that are over, agents that did not return, records to be written.
  // Call it a few times a second, and when a duration ends.
  void Tick();

  // Something that was found about a capture, for its record; nothing when it has ended.
  void Warn(const CaptureId& capture, std::string warning);

  const AgentRegistry& registry() const { return registry_; }
  // nullptr for one that has ended or never was.
  const CaptureRecord* FindRunning(const CaptureId& capture) const;
  // One that runs, or that has ended and is open for late agents; nullptr for any other.
  const CaptureRecord* Find(const CaptureId& capture) const;
  std::vector<CaptureRecord> Running() const;

 private:
  struct Session {
    explicit Session(CaptureSession&& state) : state(std::move(state)) {}
    CaptureSession state;
    bool unsaved = false;
    bool must_be_durable = false;  // what is unsaved
    uint64_t saved_monotonic_ns = 0;
    uint64_t stop_again_monotonic_ns = 0;  // after one that could not be written down
  };

  SessionTime Now() const;
  absl::Status CheckCurrent(const std::string& agent_id, ConnectionId from) const;
  Session* FindSession(const CaptureId& capture) const;
  // No agent is told before it is on disk: after a restart the capture would go on, and those that
  // were started again meanwhile would begin anew. Fails with what persisting returned.
  absl::Status Stop(Session& session);
  // Takes the agent into the captures that it has a part in.
  absl::StatusOr<std::vector<ResumedCapture>> JoinAll(const AgentInfo& agent);
  // Keeps one that has ended without an agent open, within the limits.
  void KeepOpen(std::unique_ptr<Session> session);
  void TickLate(const SessionTime& now);
  // Writes the record and says that it changed. A record that could not be written is written again
  // on a later Tick.
  void Save(Session& session, bool durable);
  std::string DescribeWorkers() const;

  const Clock& clock_;
  Random& random_;
  CoordinatorOutputs outputs_;
  AgentRegistry registry_;
  using Sessions = std::map<CaptureId, std::unique_ptr<Session>>;
  Sessions running_;
  Sessions late_;  // ended, and open for agents that were away
};

}  // namespace neurontrace
