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
      store_bytes(
          MakeGauge(registry, "neurontrace_aggregator_store_bytes", "Size of the store in bytes")),
      chunks_damaged(
          MakeGauge(registry, "neurontrace_aggregator_store_chunks_damaged",
                    "Chunks found damaged on disk since the start and counted as losses")),
      streams_live(MakeGauge(registry, "neurontrace_aggregator_streams_live",
                             "Streams of running captures that have started and not ended")),
      watches_refused(MakeCounter(registry, "neurontrace_aggregator_watches_refused_total",
                                  "Watches of captures refused because too many were open")),
      watches_unread(
          MakeCounter(registry, "neurontrace_aggregator_watches_stalled_total",
                      "Watches of captures cancelled because the client stopped reading")),
      secret_files_open(MakeGauge(registry, "neurontrace_aggregator_secret_files_open",
                                  "Private key files readable by every user of the machine")),
      canary_age_{MakeGaugeFamily(
          registry, "neurontrace_aggregator_canary_age_seconds",
          "Time since the last stored canary was sent, the maximum over live streams")},
      certificate_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_certificate_expiry_seconds",
                          "Expiry time of the aggregator's certificate, in seconds since 1970")},
      authority_expiry_{MakeGaugeFamily(
          registry, "neurontrace_aggregator_authority_expiry_seconds",
          "Earliest expiry time of its certificate authorities, in seconds since 1970")} {}

// Without a live stream no canary is due, and a value of 0 would look like a recent one.
void AggregatorMetrics::SetCanaryAge(std::optional<uint64_t> age_ns) { canary_age_.SetNs(age_ns); }

void AggregatorMetrics::SetSecurityEnds(const SecurityEnds& ends) {
  certificate_expiry_.Set(ends.certificate);
  authority_expiry_.Set(ends.authority);
  secret_files_open.Set(static_cast<double>(ends.open_secrets));
}

}  // namespace neurontrace
