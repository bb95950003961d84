// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/session_store.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Workers not seen for 30 days are forgotten when their agent next connects: long enough for a
// capture to learn its ranks, and short enough that the inventory does not grow for ever.
constexpr uint64_t kWorkerMemoryNs = 30ull * 24 * 3600 * 1'000'000'000;

// Logs errors of writes that the next report repeats.
void LogIfError(const absl::Status& status) {
  if (!status.ok()) SPDLOG_WARN("{}", std::string(status.message()));
}

}  // namespace

bool StoredSessions::HasUnendedCapture() const {
  return std::ranges::any_of(captures,
                             [](const CaptureRecord& capture) { return !HasEnded(capture.state); });
}

absl::StatusOr<StoredSessions> SessionStore::Read(const Store& store) {
  StoredSessions sessions;
  ASSIGN_OR_RETURN(sessions.agents, store.inventory().Agents());
  ASSIGN_OR_RETURN(sessions.captures, store.captures().List());
  return sessions;
}

void SessionStore::Restore(StoredSessions sessions, Coordinator& coordinator) {
  for (AgentRecord& agent : sessions.agents) {
    coordinator.RestoreAgent(std::move(agent.info), agent.first_seen_realtime_ns,
                             agent.last_seen_realtime_ns);
  }
  for (CaptureRecord& capture : sessions.captures) {
    if (!HasEnded(capture.state)) SPDLOG_INFO("capture {} continues", capture.id.ToString());
    coordinator.RestoreCapture(std::move(capture));
  }
}

// Late agents change a capture that has ended, so it is counted when it is first stored as ended.
absl::Status SessionStore::PutCapture(const CaptureRecord& record, bool durable) {
  // Read before the write, which replaces the record that shows whether the capture had ended.
  Store& store = deps_.storage.store();
  const bool has_ended = HasEnded(record.state);
  bool ends = false;
  if (has_ended) {
    const auto known = store.captures().Get(record.id);
    ends = !known.ok() || !HasEnded(known->state);
  }
  absl::Status status = store.captures().Put(record, durable);
  // Without traffic no chunk would reveal a failing disk.
  deps_.storage.RecordWrite(Storage::Written::kRecord, status);
  if (ends && status.ok()) deps_.metrics.CountEnded(record.state);
  // Frees the memory of its streams; a late agent's chunks load them again.
  if (has_ended && status.ok()) store.chunks().Forget(record.id);
  return status;
}

void SessionStore::RememberAgent(const KnownAgent& agent) {
  InventoryStore& inventory = deps_.storage.store().inventory();
  LogIfError(inventory.PutAgent({.info = agent.info,
                                 .first_seen_realtime_ns = agent.first_seen_realtime_ns,
                                 .last_seen_realtime_ns = agent.last_seen_realtime_ns}));
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  // Only on connection, so that a fleet does not search its inventories for every change. The
  // second condition keeps the subtraction from wrapping around on a machine whose clock is not
  // set.
  if (agent.connection && now_ns > kWorkerMemoryNs) {
    LogIfError(inventory.PruneWorkers(agent.info.instance_id, now_ns - kWorkerMemoryNs));
  }
}

void SessionStore::RememberWorker(const std::string& agent_id, const WorkerInfo& worker) {
  InventoryStore& inventory = deps_.storage.store().inventory();
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  // Writes replace the whole record, so the first sighting is carried over.
  const auto known = inventory.Worker(worker.identity);
  LogIfError(inventory.PutWorker(
      {.info = worker,
       .agent_id = agent_id,
       .first_seen_realtime_ns = known.ok() ? known->first_seen_realtime_ns : now_ns,
       .last_seen_realtime_ns = now_ns}));
}

}  // namespace neurontrace
