// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_metrics.h"

#include <string>

#include "trace/capture_obstacle.h"

namespace neurontrace {
namespace {

prometheus::Gauge& Gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& Counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& RefusedConnections(prometheus::Registry& registry, const char* reason) {
  return prometheus::BuildCounter()
      .Name("neurontrace_aggregator_connections_refused_total")
      .Help("Connections closed at once")
      .Register(registry)
      .Add({{"reason", reason}});
}

prometheus::Histogram& Seconds(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add(
      {},
      prometheus::Histogram::BucketBoundaries{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10});
}

}  // namespace

AggregatorMetrics::AggregatorMetrics(prometheus::Registry& registry)
    : agents_connected(
          Gauge(registry, "neurontrace_aggregator_agents_connected", "Agents connected")),
      workers(Gauge(registry, "neurontrace_aggregator_workers", "Workers of connected agents")),
      captures_running(Gauge(registry, "neurontrace_aggregator_captures_running",
                             "Captures arming, recording or stopping")),
      captures_stored(
          Gauge(registry, "neurontrace_aggregator_captures_stored", "Captures in the store")),
      store_bytes(Gauge(registry, "neurontrace_aggregator_store_bytes", "Bytes of the store")),
      chunks_damaged(Gauge(registry, "neurontrace_aggregator_store_chunks_damaged",
                           "Chunks found damaged on disk since the start, now losses")),
      streams_live(Gauge(registry, "neurontrace_aggregator_streams_live",
                         "Streams of captures that go on, begun and not ended")),
      exports(Counter(registry, "neurontrace_aggregator_exports_total", "Exports begun")),
      exports_refused(Counter(registry, "neurontrace_aggregator_exports_refused_total",
                              "Exports that were not begun, as too many were being made")),
      exports_unread(Counter(registry, "neurontrace_aggregator_exports_unread_total",
                             "Exports that were ended, as nobody read them")),
      exports_running(
          Gauge(registry, "neurontrace_aggregator_exports_running", "Exports that are being made")),
      watches_refused(Counter(registry, "neurontrace_aggregator_watches_refused_total",
                              "Watches of captures that were not begun, as too many went on")),
      watches_unread(Counter(registry, "neurontrace_aggregator_watches_unread_total",
                             "Watches of captures that were ended, as nobody read them")),
      audit_failures(Counter(registry, "neurontrace_aggregator_audit_failures_total",
                             "Lines of the audit log that could not be written")),
      secret_files_open(Gauge(registry, "neurontrace_aggregator_secret_files_open",
                              "Private key files that every user of the machine may read")),
      handshakes_failed(Counter(registry, "neurontrace_aggregator_handshakes_failed_total",
                                "TLS handshakes that failed: certificates that are not trusted "
                                "here, or plain text")),
      connections_refused_descriptors(RefusedConnections(registry, "descriptors")),
      connections_refused_address(RefusedConnections(registry, "address")),
      captures_begun(Counter(registry, "neurontrace_aggregator_captures_begun_total",
                             "Captures that began to record")),
      captures_not_begun(Counter(registry, "neurontrace_aggregator_captures_not_begun_total",
                                 "Captures of which too few workers could take part")),
      arm_seconds(Seconds(registry, "neurontrace_aggregator_arm_seconds",
                          "From the command to the decision whether a capture begins")),
      begin_lead_seconds(Seconds(registry, "neurontrace_aggregator_begin_lead_seconds",
                                 "From that decision to the moment at which it begins")),
      canary_age_{prometheus::BuildGauge()
                      .Name("neurontrace_aggregator_canary_age_seconds")
                      .Help("Since the last stored canary was sent, of the live stream that is "
                            "worst off")
                      .Register(registry)},
      certificate_expiry_{prometheus::BuildGauge()
                              .Name("neurontrace_aggregator_certificate_expiry_seconds")
                              .Help("Until when the aggregator's certificate is valid, since 1970")
                              .Register(registry)},
      authority_expiry_{prometheus::BuildGauge()
                            .Name("neurontrace_aggregator_authority_expiry_seconds")
                            .Help("Until when the first of its authorities is valid, since 1970")
                            .Register(registry)},
      access_file_good_{prometheus::BuildGauge()
                            .Name("neurontrace_aggregator_access_file_good")
                            .Help("0 while the file of access cannot be used, and the rules "
                                  "before it are in force")
                            .Register(registry)},
      workers_refused_(prometheus::BuildCounter()
                           .Name("neurontrace_aggregator_workers_refused_total")
                           .Help("Selected workers that could not take part, by what kept them")
                           .Register(registry)) {}

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
