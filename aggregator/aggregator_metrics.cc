// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_metrics.h"

#include <string>

#include "trace/capture_obstacle.h"

namespace neurontrace {
namespace {

prometheus::Counter& RefusedConnections(prometheus::Registry& registry, const char* reason) {
  return MakeCounter(registry, "neurontrace_aggregator_connections_refused_total",
                     "Connections closed at once", {{"reason", reason}});
}

prometheus::Histogram& Seconds(prometheus::Registry& registry, const char* name, const char* help) {
  return MakeHistogram(registry, name, help, {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10});
}

}  // namespace

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
      exports(MakeCounter(registry, "neurontrace_aggregator_exports_total", "Exports begun")),
      exports_refused(MakeCounter(registry, "neurontrace_aggregator_exports_refused_total",
                                  "Exports that were not begun, as too many were being made")),
      exports_unread(MakeCounter(registry, "neurontrace_aggregator_exports_unread_total",
                                 "Exports that were ended, as nobody read them")),
      exports_running(MakeGauge(registry, "neurontrace_aggregator_exports_running",
                                "Exports that are being made")),
      watches_refused(MakeCounter(registry, "neurontrace_aggregator_watches_refused_total",
                                  "Watches of captures that were not begun, as too many went on")),
      watches_unread(MakeCounter(registry, "neurontrace_aggregator_watches_unread_total",
                                 "Watches of captures that were ended, as nobody read them")),
      audit_failures(MakeCounter(registry, "neurontrace_aggregator_audit_failures_total",
                                 "Lines of the audit log that could not be written")),
      secret_files_open(MakeGauge(registry, "neurontrace_aggregator_secret_files_open",
                                  "Private key files that every user of the machine may read")),
      handshakes_failed(MakeCounter(registry, "neurontrace_aggregator_handshakes_failed_total",
                                    "TLS handshakes that failed: certificates that are not trusted "
                                    "here, or plain text")),
      connections_refused_descriptors(RefusedConnections(registry, "descriptors")),
      connections_refused_address(RefusedConnections(registry, "address")),
      captures_begun(MakeCounter(registry, "neurontrace_aggregator_captures_begun_total",
                                 "Captures that began to record")),
      captures_not_begun(MakeCounter(registry, "neurontrace_aggregator_captures_not_begun_total",
                                     "Captures that did not begin as too few workers could join")),
      arm_seconds(Seconds(registry, "neurontrace_aggregator_arm_seconds",
                          "From the command to the decision whether a capture begins")),
      begin_lead_seconds(Seconds(registry, "neurontrace_aggregator_begin_lead_seconds",
                                 "From that decision to the moment at which it begins")),
      canary_age_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_canary_age_seconds",
                          "Since the last stored canary was sent, of the live stream that is "
                          "worst off")},
      certificate_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_certificate_expiry_seconds",
                          "Until when the aggregator's certificate is valid, since 1970")},
      authority_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_authority_expiry_seconds",
                          "Until when the first of its authorities is valid, since 1970")},
      access_file_good_{MakeGaugeFamily(registry, "neurontrace_aggregator_access_file_good",
                                        "0 while the file of access cannot be used, and the rules "
                                        "before it are in force")},
      workers_refused_(
          MakeCounterFamily(registry, "neurontrace_aggregator_workers_refused_total",
                            "Selected workers that could not take part, by what kept them")) {}

void AggregatorMetrics::CountRefused(CaptureObstacle obstacle, uint32_t workers) {
  workers_refused_.Add({{"obstacle", std::string(WordsOf(obstacle))}})
      .Increment(static_cast<double>(workers));
}

void AggregatorMetrics::SetCanaryAge(std::optional<uint64_t> age_ns) { canary_age_.SetNs(age_ns); }

void AggregatorMetrics::SetSecurityEnds(const SecurityEnds& ends) {
  certificate_expiry_.Set(ends.certificate);
  authority_expiry_.Set(ends.authority);
  secret_files_open.Set(static_cast<double>(ends.open_secrets));
}

void AggregatorMetrics::SetAccessFileGood(bool is_good) { access_file_good_.Set(is_good); }

}  // namespace neurontrace
