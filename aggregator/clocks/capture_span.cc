// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/capture_span.h"

#include <algorithm>
#include <vector>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// The span of a continuous capture has at least this length before its end, because timestamps are
// those of hosts, whose clocks can be off.
constexpr uint64_t kSpanMinNs = 900'000'000'000;

// Returns `ns` minus `by_ns`, but not less than 0.
uint64_t BackFrom(uint64_t ns, uint64_t by_ns) { return ns > by_ns ? ns - by_ns : 0; }

// Compares on the machine's own REALTIME, which is the clock of both its events and its snapshots.
// Returns true for a machine without evidence. Reads only its last batch.
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

RealtimeWindow SpanOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                      uint64_t now_realtime_ns) {
  RealtimeWindow span{.begin_ns = record.started_realtime_ns, .end_ns = now_realtime_ns};
  if (HasEnded(record.state)) span.end_ns = std::max(span.begin_ns, record.ended_realtime_ns);
  span.end_ns = std::max(span.begin_ns, span.end_ns);
  // Only a continuous capture loses its oldest events while it runs.
  if (record.spec.mode != CaptureMode::kContinuous) return span;
  uint64_t oldest_ns =
      BackFrom(span.end_ns, std::max(record.spec.retention.duration_ns, kSpanMinNs));
  for (const StreamRecord& stream : streams) {
    // The timestamps of a stream with its own clock cannot be compared with REALTIME.
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    if (stream.events > 0) oldest_ns = std::min(oldest_ns, stream.first_timestamp_ns);
  }
  span.begin_ns = std::max(span.begin_ns, oldest_ns);
  return span;
}

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
