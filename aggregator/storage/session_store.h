// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_end_listener.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/storage/storage.h"
#include "aggregator/store/inventory_store.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The captures and agents of earlier runs, as the store has them. A plain value.
struct StoredSessions {
  std::vector<AgentRecord> agents;
  std::vector<CaptureRecord> captures;

  // Whether a capture of an earlier run has not ended.
  bool HasUnendedCapture() const;
};

// Keeps what the coordinator decides in the store, and restores it after a restart. All on the
// coordinator's sequence, but for Read.
class SessionStore {
 public:
  // All outlive it.
  struct Deps {
    Storage& storage;
    const Clock& clock;
    CaptureMetrics& metrics;
    std::vector<CaptureEndListener*> listeners;  // told in this order
  };
  explicit SessionStore(Deps deps) : deps_(std::move(deps)) {}

  // Reads what earlier runs left. Fails with the store's error.
  static absl::StatusOr<StoredSessions> Read(const Store& store);
  // Gives agents and captures of earlier runs to the coordinator, before anything else happens.
  static void Restore(StoredSessions sessions, Coordinator& coordinator);

  // Writes a capture; with `durable` it is on disk on return. Counts a capture that ends with it,
  // and tells the listeners of one that has ended durably. Fails with the store's error.
  absl::Status Persist(const CaptureRecord& record, bool durable);
  // Remember agents and workers as they come and go. A failure is only logged: agents report all of
  // it again.
  void RememberAgent(const KnownAgent& agent);
  void RememberWorker(const std::string& agent_id, const WorkerInfo& worker);

 private:
  absl::Status Put(const CaptureRecord& record, bool durable);

  const Deps deps_;
};

}  // namespace neurontrace
