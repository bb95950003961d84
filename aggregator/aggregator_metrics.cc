// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_metrics.h"

namespace neurontrace {

AggregatorMetrics::AggregatorMetrics(prometheus::Registry& registry)
    : agents_connected(
          MakeGauge(registry, "neurontrace_aggregator_agents_connected", "Agents connected")),
      workers(MakeGauge(registry, "neurontrace_aggregator_workers", "Workers of connected agents")),
      captures_running(MakeGauge(registry, "neurontrace_aggregator_captures_running",
                                 "Captures arming, recording or stopping")),
      captures_stored(
          MakeGauge(registry, "neurontrace_aggregator_captures_stored", "Captures in the store")),
      store_bytes(MakeGauge(registry, "neurontrace_aggregator_store_bytes", "Bytes of the store")),
      chunks_damaged(MakeGauge(registry, "neurontrace_aggregator_store_chunks_damaged",
                               "Chunks found damaged on disk since the start, now losses")),
      streams_live(MakeGauge(registry, "neurontrace_aggregator_streams_live",
                             "Streams of captures that go on, begun and not ended")),
      watches_refused(MakeCounter(registry, "neurontrace_aggregator_watches_refused_total",
                                  "Watches of captures that were not begun, as too many went on")),
      watches_unread(MakeCounter(registry, "neurontrace_aggregator_watches_stalled_total",
                                 "Watches of captures that were ended, as nobody read them")),
      secret_files_open(MakeGauge(registry, "neurontrace_aggregator_secret_files_open",
                                  "Private key files that every user of the machine may read")),
      canary_age_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_canary_age_seconds",
                          "Since the last stored canary was sent, of the live stream that is "
                          "worst off")},
      certificate_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_certificate_expiry_seconds",
                          "Until when the aggregator's certificate is valid, since 1970")},
      authority_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_authority_expiry_seconds",
                          "Until when the first of its authorities is valid, since 1970")} {}

void AggregatorMetrics::SetCanaryAge(std::optional<uint64_t> age_ns) { canary_age_.SetNs(age_ns); }

void AggregatorMetrics::SetSecurityEnds(const SecurityEnds& ends) {
  certificate_expiry_.Set(ends.certificate);
  authority_expiry_.Set(ends.authority);
  secret_files_open.Set(static_cast<double>(ends.open_secrets));
}

}  // namespace neurontrace
