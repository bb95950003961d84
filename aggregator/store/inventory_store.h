// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/record_codec.h"
#include "lib/trace/ids.h"

namespace neurontrace {

class Database;

// Remembers agents and workers, so that ranks that become known after a capture apply to it. Writes
// are not synced: agents report everything again when they reconnect. Any thread; the database must
// outlive it.
class InventoryStore {
 public:
  explicit InventoryStore(Database& database) : database_(database) {}
  InventoryStore(const InventoryStore&) = delete;
  InventoryStore& operator=(const InventoryStore&) = delete;

  // Write or replace a record.
  absl::Status PutAgent(const AgentRecord& record);
  absl::Status PutWorker(const WorkerRecord& record);
  // Returns every stored agent. Fails with DATA_LOSS if a record cannot be decoded.
  absl::StatusOr<std::vector<AgentRecord>> Agents() const;
  // Fails with NOT_FOUND if the worker was never seen or has been pruned.
  absl::StatusOr<WorkerRecord> Worker(const WorkerIdentity& identity) const;
  // Deletes the workers of an instance that were last seen before this time, in ns of
  // CLOCK_REALTIME.
  absl::Status PruneWorkers(std::string_view instance_id, uint64_t last_seen_before_ns);

 private:
  Database& database_;
};

}  // namespace neurontrace
