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

// The captures and agents of earlier runs, as read from the store. Workers are not part of it:
// agents report them again when they connect. A plain value.
struct StoredSessions {
  std::vector<AgentRecord> agents;
  std::vector<CaptureRecord> captures;

  // Returns whether a capture of an earlier run has not ended.
  bool HasUnendedCapture() const;
};

// Stores the coordinator's decisions and restores them after a restart. Called on the coordinator's
// sequence, except for Read, which any thread may call before the coordinator exists. A durable
// PutCapture waits for the disk.
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
  // Passes agents and captures of earlier runs to the coordinator, before anything else calls it.
  // Captures that have ended are passed, too; the coordinator keeps those that await agents.
  static void Restore(StoredSessions sessions, Coordinator& coordinator);

  // Implement SessionStorage. PutCapture counts a capture that ends with this record, and reports
  // the result of the write to Storage; it fails with the store's error, and the record in the
  // store is then the earlier one. The other two only log a failure, as agents report all of it
  // again.
  absl::Status PutCapture(const CaptureRecord& record, bool durable) override;
  void RememberAgent(const KnownAgent& agent) override;
  // Keeps the time at which the worker was first seen.
  void RememberWorker(const std::string& agent_id, const WorkerInfo& worker) override;

 private:
  const Deps deps_;
};

}  // namespace neurontrace
