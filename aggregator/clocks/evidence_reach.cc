// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/evidence_reach.h"

#include <algorithm>
#include <vector>

#include "base/status.h"

namespace neurontrace {
namespace {

// By the machine's own REALTIME, which both its events and its snapshots are stamped with.
absl::StatusOr<bool> Reaches(const ClockEvidenceStore& store, const HostBoot& host,
                             uint64_t last_event_ns) {
  ASSIGN_OR_RETURN(const uint64_t last_ns, store.LastMeasuredNs(host));
  if (last_ns == 0) return true;
  ASSIGN_OR_RETURN(const ClockEvidence evidence, store.Read(host, {last_ns, last_ns}));
  return std::ranges::any_of(evidence.snapshots, [&](const ClockSnapshot& snapshot) {
    return snapshot.realtime_ns >= last_event_ns;
  });
}

}  // namespace

absl::StatusOr<LastEvents> LastEventsOf(const Store& store, const CaptureRecord& record) {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, store.OpenCapture(record.id).Streams());
  LastEvents events;
  for (const StreamRecord& stream : streams) {
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const WorkerIdentity& worker = stream.identity.worker;
    uint64_t& last_ns = events[{worker.instance_id, worker.boot_id}];
    last_ns = std::max(last_ns, stream.last_timestamp_ns);
  }
  return events;
}

absl::StatusOr<bool> EvidenceReaches(const ClockEvidenceStore& store, const LastEvents& events) {
  for (const auto& [host, last_ns] : events) {
    ASSIGN_OR_RETURN(const bool reaches, Reaches(store, host, last_ns));
    if (!reaches) return false;
  }
  return true;
}

}  // namespace neurontrace
