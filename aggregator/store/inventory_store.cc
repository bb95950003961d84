// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/inventory_store.h"

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"

namespace neurontrace {

// Not synced, as the agent reports itself again.
absl::Status InventoryStore::PutAgent(const AgentRecord& record) {
  return database_.Put(Family::kAgents, record.info.agent_id, EncodeAgentRecord(record), false);
}

absl::Status InventoryStore::PutWorker(const WorkerRecord& record) {
  return database_.Put(Family::kWorkers, keys::Worker(record.info.identity),
                       EncodeWorkerRecord(record), false);
}

absl::StatusOr<std::vector<AgentRecord>> InventoryStore::Agents() const {
  std::vector<AgentRecord> records;
  RETURN_IF_ERROR(
      database_.ForEach(Family::kAgents, "", [&](std::string_view, std::string_view value) {
        auto record = DecodeAgentRecord(value);
        if (record.ok()) records.push_back(*std::move(record));
        return record.status();
      }));
  return records;
}

absl::StatusOr<WorkerRecord> InventoryStore::Worker(const WorkerIdentity& identity) const {
  const auto value = database_.Get(Family::kWorkers, keys::Worker(identity));
  if (absl::IsNotFound(value.status())) {
    return NotFound("worker {} was never seen", ToString(identity));
  }
  RETURN_IF_ERROR(value.status());
  return DecodeWorkerRecord(*value);
}

// A record that cannot be decoded ends the pruning with its error; nothing is deleted then.
absl::Status InventoryStore::PruneWorkers(std::string_view instance_id,
                                          uint64_t last_seen_before_ns) {
  rocksdb::WriteBatch batch;
  RETURN_IF_ERROR(database_.ForEach(Family::kWorkers, keys::WorkerPrefix(instance_id),
                                    [&](std::string_view key, std::string_view value) {
                                      const auto record = DecodeWorkerRecord(value);
                                      if (!record.ok()) return record.status();
                                      if (record->last_seen_realtime_ns < last_seen_before_ns) {
                                        batch.Delete(database_.family(Family::kWorkers),
                                                     ToSlice(key));
                                      }
                                      return absl::OkStatus();
                                    }));
  return database_.Write(batch, /*sync=*/false, "pruning workers");
}

}  // namespace neurontrace
