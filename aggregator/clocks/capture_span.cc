// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/capture_span.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Stamps are those of hosts, whose clocks can be off: so much before the end is in it always.
constexpr uint64_t kSpanMinNs = 900'000'000'000;

uint64_t BackFrom(uint64_t ns, uint64_t by_ns) { return ns > by_ns ? ns - by_ns : 0; }

}  // namespace

RealtimeWindow SpanOf(const CaptureRecord& record, std::span<const StreamRecord> streams,
                      uint64_t now_realtime_ns) {
  RealtimeWindow span{.begin_ns = record.started_realtime_ns, .end_ns = now_realtime_ns};
  if (HasEnded(record.state)) span.end_ns = std::max(span.begin_ns, record.ended_realtime_ns);
  span.end_ns = std::max(span.begin_ns, span.end_ns);
  if (record.spec.mode != CaptureMode::kContinuous) return span;
  uint64_t oldest_ns = BackFrom(span.end_ns, std::max(record.spec.retention_ns, kSpanMinNs));
  for (const StreamRecord& stream : streams) {
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    if (stream.events > 0) oldest_ns = std::min(oldest_ns, stream.first_timestamp_ns);
  }
  span.begin_ns = std::max(span.begin_ns, oldest_ns);
  return span;
}

}  // namespace neurontrace
