// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/evidence_reach.h"

#include <algorithm>
#include <map>

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

absl::StatusOr<bool> EvidenceReachesEnd(const Store& store, const CaptureRecord& record) {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams, store.OpenCapture(record.id).Streams());
  std::map<HostBoot, uint64_t> last_event_ns;
  for (const StreamRecord& stream : streams) {
    const WorkerIdentity& worker = stream.identity.worker;
    uint64_t& last_ns = last_event_ns[{worker.instance_id, worker.boot_id}];
    last_ns = std::max(last_ns, stream.last_timestamp_ns);
  }
  for (const auto& [host, last_ns] : last_event_ns) {
    ASSIGN_OR_RETURN(const bool reaches, Reaches(store.clocks(), host, last_ns));
    if (!reaches) return false;
  }
  return true;
}

}  // namespace neurontrace
