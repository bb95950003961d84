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

// Which agents and workers have been here. Ranks that become known after a capture are found here.
// Any thread. Writes are not awaited on disk: agents tell all of it again when they reconnect.
class InventoryStore {
 public:
  explicit InventoryStore(Database& database) : database_(database) {}
  InventoryStore(const InventoryStore&) = delete;
  InventoryStore& operator=(const InventoryStore&) = delete;

  absl::Status PutAgent(const AgentRecord& record);
  absl::Status PutWorker(const WorkerRecord& record);
  absl::StatusOr<std::vector<AgentRecord>> Agents() const;
  // NOT_FOUND where it was never seen.
  absl::StatusOr<WorkerRecord> Worker(const WorkerIdentity& identity) const;
  // Drops the workers of an instance that were last seen before this moment.
  absl::Status PruneWorkers(std::string_view instance_id, uint64_t last_seen_before_ns);

 private:
  Database& database_;
};

}  // namespace neurontrace
