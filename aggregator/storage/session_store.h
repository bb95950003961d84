// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/agent_registry.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/session/session_environment.h"
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
class SessionStore final : public SessionStorage {
 public:
  // All outlive it.
  struct Deps {
    Storage& storage;
    const Clock& clock;
    CaptureMetrics& metrics;
  };
  explicit SessionStore(const Deps& deps) : deps_(deps) {}

  // Reads what earlier runs left. Fails with the store's error.
  static absl::StatusOr<StoredSessions> Read(const Store& store);
  // Gives agents and captures of earlier runs to the coordinator, before anything else happens.
  static void Restore(StoredSessions sessions, Coordinator& coordinator);

  // SessionStorage. PutCapture counts a capture that ends with this record. The others only log a
  // failure: agents report all of it again.
  absl::Status PutCapture(const CaptureRecord& record, bool durable) override;
  void RememberAgent(const KnownAgent& agent) override;
  void RememberWorker(const std::string& agent_id, const WorkerInfo& worker) override;

 private:
  const Deps deps_;
};

}  // namespace neurontrace
