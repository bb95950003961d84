// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/session_store.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Workers that were not seen for so long are forgotten when their agent next connects.
constexpr uint64_t kWorkerMemoryNs = 30ull * 24 * 3600 * 1'000'000'000;

void LogIfError(const absl::Status& status) {
  if (!status.ok()) SPDLOG_WARN("{}", std::string(status.message()));
}

std::string_view EndWord(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "before it began,";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
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

absl::Status SessionStore::Persist(const CaptureRecord& record, bool durable) {
  const absl::Status status = Put(record, durable);
  deps_.storage.RecordWrite(status);  // there may be no chunks that would show it
  if (!status.ok() || !HasEnded(record.state)) return status;
  deps_.storage.store().chunks().Forget(record.id);
  if (!durable) return status;
  for (CaptureEndListener* const listener : deps_.listeners) listener->OnCaptureEnded(record);
  SPDLOG_INFO("capture {} ended {} with {} warnings", record.id.ToString(), EndWord(record.state),
              record.warnings.size() + record.end_warnings.size());
  return status;
}

// Agents that come late change one that has ended: its end is the first time that it is stored so.
absl::Status SessionStore::Put(const CaptureRecord& record, bool durable) {
  CaptureStore& captures = deps_.storage.store().captures();
  bool ends = false;
  if (HasEnded(record.state)) {
    const auto known = captures.Get(record.id);
    ends = !known.ok() || !HasEnded(known->state);
  }
  const absl::Status status = captures.Put(record, durable);
  if (ends && status.ok()) deps_.metrics.CountEnded(record.state);
  return status;
}

void SessionStore::RememberAgent(const KnownAgent& agent) {
  InventoryStore& inventory = deps_.storage.store().inventory();
  LogIfError(inventory.PutAgent({.info = agent.info,
                                 .first_seen_realtime_ns = agent.first_seen_realtime_ns,
                                 .last_seen_realtime_ns = agent.last_seen_realtime_ns}));
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  if (agent.connection && now_ns > kWorkerMemoryNs) {
    LogIfError(inventory.PruneWorkers(agent.info.instance_id, now_ns - kWorkerMemoryNs));
  }
}

void SessionStore::RememberWorker(const std::string& agent_id, const WorkerInfo& worker) {
  InventoryStore& inventory = deps_.storage.store().inventory();
  const uint64_t now_ns = deps_.clock.RealtimeNs();
  const auto known = inventory.Worker(worker.identity);
  LogIfError(inventory.PutWorker(
      {.info = worker,
       .agent_id = agent_id,
       .first_seen_realtime_ns = known.ok() ? known->first_seen_realtime_ns : now_ns,
       .last_seen_realtime_ns = now_ns}));
}

}  // namespace neurontrace
