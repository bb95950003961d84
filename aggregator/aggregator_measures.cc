// SPDX-License-Identifier: Apache-2.0
// What Aggregator says of itself in metrics, beside what its parts count.
#include <string>

#include "aggregator/aggregator.h"
#include "trace/capture_limits.h"

namespace neurontrace {

void Aggregator::UpdateMetrics() {
  measured_monotonic_ns_ = clock_.MonotonicNs();
  const AgentRegistry& registry = coordinator_.registry();
  metrics_.agents_connected.Set(static_cast<double>(registry.connected()));
  metrics_.workers.Set(static_cast<double>(registry.workers()));
  metrics_.captures_running.Set(static_cast<double>(coordinator_.running()));
  metrics_.audit_failures.Increment(static_cast<double>(audit_->failed()) -
                                    metrics_.audit_failures.Value());
  metrics_.captures_stored.Set(static_cast<double>(store_->captures().size()));
  metrics_.chunks_damaged.Set(static_cast<double>(store_->chunks().damaged_chunks()));
  metrics_.store_bytes.Set(static_cast<double>(store_->bytes()));
  process_.Publish();
  store_metrics_.Publish();
  CanaryAges& canaries = committer_.canary_ages();
  canaries.KeepOnly(
      [this](const CaptureId& id) { return coordinator_.FindRunning(id) != nullptr; });
  // Nothing is due of who is lost: captures go on with the others.
  const uint64_t now_ns = clock_.RealtimeNs();
  canaries.ForgetLost(limits::kAgentLostForNs, measured_monotonic_ns_,
                      [&](const std::string& agent_id) {
                        return IsAwayFor(registry.Find(agent_id), limits::kAgentLostForNs, now_ns);
                      });
  metrics_.streams_live.Set(static_cast<double>(canaries.streams()));
  metrics_.SetCanaryAge(canaries.OldestNs(measured_monotonic_ns_));
}

// What asks the disk, or takes a while with many instances.
void Aggregator::MeasureSlowly() {
  store_metrics_.LookAtDisk();
  clock_bounds_.Publish(clocks_->live().BoundsAt(clocks_->ReferenceNowNs()));
  metrics_.SetSecurityEnds(EndsOf(security_));
}

// Agents that come late change one that has ended: its end is the first time that it is stored so.
absl::Status Aggregator::Persist(const CaptureRecord& record, bool durable) {
  bool ends = false;
  if (HasEnded(record.state)) {
    const auto known = store_->captures().Get(record.id);
    ends = !known.ok() || !HasEnded(known->state);
  }
  const absl::Status status = store_->captures().Put(record, durable);
  if (ends && status.ok()) capture_metrics_.CountEnded(record.state);
  return status;
}

}  // namespace neurontrace
