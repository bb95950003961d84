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
#include "aggregator/session/capture_update.h"
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

// Brings agents and captures together: decides which agent gets which order and when, and what is
// stored. A plain state machine: I/O and time are behind the interfaces of Deps. All calls come on
// one sequence, which the owner provides.
//
//   agents' reports --> Coordinator --> CaptureSession   the state of one capture
//   operators       -->     |    \----> CaptureJournal   storage and observers
//                           |     \---> OrderDispatcher  orders to agents
//                           \---------> LateCaptures     ended, open for agents that were away
class Coordinator : private CaptureLookup {
 public:
  // All of them must outlive the coordinator.
  struct Deps {
    const Clock& clock;
    Random& random;
    OrderSender& orders;
    SessionStorage& storage;
    SessionClocks& clocks;
    StorageQuota& quota;
    TaskRunner* sequence = nullptr;  // sends orders at their moment; null: only Tick does
  };
  explicit Coordinator(const Deps& deps);
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // Adds an observer, which must outlive the coordinator.
  void AddObserver(CaptureObserver& observer) { journal_.AddObserver(observer); }

  // Restore what an earlier run of the aggregator stored, ended captures included. Called before
  // anything else.
  void RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                    uint64_t last_seen_realtime_ns);
  void RestoreCapture(CaptureRecord record);

  // Called for agents. Connect returns the captures in which the agent takes part. Fails with the
  // errors of AgentRegistry::Connect, and with UNAVAILABLE if the agent's part in a capture cannot
  // be stored. Reports over a superseded connection are refused with ABORTED; reports about a
  // capture that is over are ignored.
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

  // Starts a capture, which then arms; if no agent can be asked, it may have ended already. Fails
  // with the errors of CompleteSpec and Admit, with RESOURCE_EXHAUSTED beyond
  // limits::kCapturesRunningMax, and with the storage's error; no agent has then received an order.
  // See CaptureContext for `can_name`.
  absl::StatusOr<CaptureRecord> StartCapture(const CaptureSpec& spec, const CanName& can_name = {});
  // Stops a capture and returns its record; does nothing to one that is stopping already. Fails
  // with NOT_FOUND if the capture is not running, and with the storage's error; the capture then
  // continues.
  absl::StatusOr<CaptureRecord> StopCapture(const CaptureId& capture);

  // Changes the name, the star or the tags of a capture that runs, or has ended and awaits late
  // agents; the record is synced on return. Fails with NOT_FOUND for any other capture, with the
  // errors of CaptureUpdate::ApplyTo, and with the storage's error; the capture is then unchanged.
  absl::StatusOr<CaptureRecord> UpdateCapture(const CaptureId& capture,
                                              const CaptureUpdate& update);

  // Stops waiting for late agents of an ended capture, because it is being deleted.
  void Forget(const CaptureId& capture) { late_.Forget(capture); }

  // Acts on the passage of time: missing answers, moments that have come, durations that are over,
  // agents that did not return, and records that are due. Called several times a second.
  void Tick();

  // Adds a warning to the record of a running capture; does nothing if it has ended.
  void Warn(const CaptureId& capture, std::string warning);
  // Adds a warning to the record of every running capture.
  void WarnAll(const std::string& warning);

  const AgentRegistry& registry() const { return registry_; }
  // Returns nullptr if the capture has ended or never existed. Valid until the next call.
  const CaptureRecord* FindRunning(const CaptureId& capture) const;
  // Returns the record of a capture that runs, or has ended and awaits late agents; nullptr for any
  // other.
  const CaptureRecord* Find(const CaptureId& capture) const override;
  size_t running() const { return running_.size(); }
  void ForEachRunning(const std::function<void(const CaptureRecord&)>& visit) const;
  std::vector<CaptureRecord> Running() const;  // copies every record

 private:
  SessionTime Now() const;
  // Fails with ABORTED if the connection is not the agent's current one.
  absl::Status CheckCurrent(const std::string& agent_id, ConnectionId from) const;
  TrackedCapture* FindTracked(const CaptureId& capture) const;
  // Makes the agent take part in the captures that select it.
  absl::StatusOr<std::vector<ResumedCapture>> JoinAll(const AgentInfo& agent);
  // Shortly after a restart, waits for selected agents that are known and not connected again.
  void AwaitReturning(CaptureSession& session, const SessionTime& now) const;
  // Passes all known workers, and agents that have left recently, to the session.
  void AddKnownWorkers(CaptureSession& session, const SessionTime& now) const;
  // Judges and stores the end.
  void End(TrackedCapture& capture, const SessionTime& now);

  // Each of these stores its decision before any agent gets an order, and fails with the storage's
  // error: otherwise a restart would restore another state than the one that agents know.
  absl::Status CheckArming(TrackedCapture& capture);
  absl::Status Begin(TrackedCapture& capture, CaptureSession judged, uint64_t lead_ns,
                     const SessionTime& now);
  absl::Status NotBegin(TrackedCapture& capture, CaptureSession judged, std::string why);
  absl::Status ChooseExecutions(TrackedCapture& capture, uint64_t first);
  absl::Status Stop(TrackedCapture& capture, bool by_time);

  void TickRunning(TrackedCapture& capture, const SessionTime& now);
  // Stops the capture if its time or its executions are over, or a quota is reached.
  void StopIfDue(TrackedCapture& capture, const SessionTime& now);

  const Deps deps_;
  const uint64_t restored_monotonic_ns_;  // when this run began, for agents of an earlier one
  AgentRegistry registry_;
  CaptureJournal journal_;
  OrderDispatcher orders_;
  TrackedCaptures running_;
  LateCaptures late_;
  SnapshotCuts cuts_;
};

}  // namespace neurontrace
