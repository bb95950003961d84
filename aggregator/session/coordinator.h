// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_journal.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/session/capture_order.h"
#include "aggregator/session/capture_request.h"
#include "aggregator/session/capture_session.h"
#include "aggregator/session/late_captures.h"
#include "aggregator/session/order_dispatcher.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/session/snapshot_cuts.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Brings agents and captures together: decides which agent is told what and when, and what is
// stored. Does no I/O of its own. Everything happens on one sequence, which the owner provides.
//
//   agents' reports --> Coordinator --> CaptureSession   the state of one capture
//   operators       -->     |    \----> CaptureJournal   storage and observers
//                           |     \---> OrderDispatcher  orders to agents
//                           \---------> LateCaptures     ended, open for agents that were away
class Coordinator : private CaptureLookup {
 public:
  // All outlive the coordinator.
  struct Deps {
    const Clock& clock;
    Random& random;
    OrderSender& orders;
    SessionStorage& storage;
    SessionClocks& clocks;
    StorageQuota& quota;
    TaskRunner* sequence = nullptr;  // sends orders at their moment; null: Tick alone does
  };
  explicit Coordinator(const Deps& deps);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Adds an observer, which outlives the coordinator.
  void AddObserver(CaptureObserver& observer) { journal_.AddObserver(observer); }

  // Restores what an earlier run of the aggregator stored, captures that have ended included.
  // Called before anything else.
  void RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                    uint64_t last_seen_realtime_ns);
  void RestoreCapture(CaptureRecord record);

  // Called for agents. Connect returns the captures that the agent takes part in. Fails with the
  // errors of AgentRegistry::Connect, and with UNAVAILABLE if its part in a capture cannot be
  // written. The reports of a superseded connection are refused with ABORTED.
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

  // Starts a capture, which arms; if no agent can be asked, it has ended already. Fails with the
  // errors of CompleteSpec and Admit, with RESOURCE_EXHAUSTED beyond limits::kCapturesRunningMax,
  // and with the error of the storage; no agent has then been told. See CaptureSurroundings for
  // `may_name`.
  absl::StatusOr<CaptureRecord> StartCapture(const CaptureSpec& spec, const MayName& may_name = {});
  // Stops a capture, and returns its record; does nothing to one that is stopping already. Fails
  // with NOT_FOUND for a capture that is not running, and with the error of the storage; the
  // capture then continues.
  absl::StatusOr<CaptureRecord> StopCapture(const CaptureId& capture);

  // Forgets an ended capture that is deleted: it does not wait for late agents any more.
  void Forget(const CaptureId& capture) { late_.Forget(capture); }

  // Acts on what time has changed: answers that did not come, moments that have come, durations
  // that are over, agents that did not return, and records that are due. Called a few times a
  // second.
  void Tick();

  // Adds a warning to the record of a capture; does nothing if it has ended.
  void Warn(const CaptureId& capture, std::string warning);

  const AgentRegistry& registry() const { return registry_; }
  // Returns nullptr for a capture that has ended or never existed.
  const CaptureRecord* FindRunning(const CaptureId& capture) const;
  // Returns also a capture that has ended and awaits late agents; nullptr for any other.
  const CaptureRecord* Find(const CaptureId& capture) const override;
  size_t running() const { return running_.size(); }
  void ForEachRunning(const std::function<void(const CaptureRecord&)>& visit) const;
  std::vector<CaptureRecord> Running() const;  // copies all of them

 private:
  SessionTime Now() const;
  absl::Status CheckCurrent(const std::string& agent_id, ConnectionId from) const;
  TrackedCapture* FindTracked(const CaptureId& capture) const;
  // Makes the agent take part in the captures that select it.
  absl::StatusOr<std::vector<ResumedCapture>> JoinAll(const AgentInfo& agent);
  // Right after a restart, waits for the agents that are known and selected but not yet back.
  void AwaitReturning(CaptureSession& session, const SessionTime& now) const;
  // Tells the session of all known workers and of the agents that have left lately.
  void AddKnownWorkers(CaptureSession& session, const SessionTime& now) const;
  void End(TrackedCapture& capture, const SessionTime& now);

  // Each of these writes down its decision before any agent is told, and fails with the error of
  // the storage: otherwise a restart would restore another state than the one that agents know.
  absl::Status JudgeArming(TrackedCapture& capture);
  absl::Status Begin(TrackedCapture& capture, CaptureSession judged, uint64_t lead_ns,
                     const SessionTime& now);
  absl::Status NotBegin(TrackedCapture& capture, CaptureSession judged, std::string why);
  absl::Status ChooseExecutions(TrackedCapture& capture, uint64_t first);
  absl::Status Stop(TrackedCapture& capture, bool by_time);

  void TickRunning(TrackedCapture& capture, const SessionTime& now);
  // Stops the capture if its time or its executions are over, or a quota is reached.
  void StopIfDue(TrackedCapture& capture, const SessionTime& now);

  const Deps deps_;
  const uint64_t restored_monotonic_ns_;  // since when agents of an earlier run can return
  AgentRegistry registry_;
  CaptureJournal journal_;
  OrderDispatcher orders_;
  TrackedCaptures running_;
  LateCaptures late_;
  SnapshotCuts cuts_;
};

}  // namespace neurontrace
