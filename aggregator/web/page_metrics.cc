// SPDX-License-Identifier: Apache-2.0
#include "aggregator/web/page_metrics.h"

#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

constexpr char kRefused[] = "neurontrace_aggregator_page_requests_refused_total";
constexpr char kRefusedHelp[] =
    "Requests at the page's port refused before the aggregator's service was called";
constexpr char kEnded[] = "neurontrace_aggregator_page_sessions_ended_total";
constexpr char kEndedHelp[] = "Sessions of browsers that have ended";

}  // namespace

PageMetrics::PageMetrics(prometheus::Registry& registry)
    : connections_(MakeGauge(registry, "neurontrace_aggregator_page_connections",
                             "Open connections at the page's port")),
      accepted_(MakeCounter(registry, "neurontrace_aggregator_page_connections_total",
                            "Connections that the page's port has accepted")),
      crowded_(MakeCounter(registry, "neurontrace_aggregator_page_connections_refused_total",
                           "Connections closed at once: too many, in all or of one address")),
      failed_handshakes_(MakeCounter(registry,
                                     "neurontrace_aggregator_page_handshakes_failed_total",
                                     "Failed TLS handshakes at the page's port")),
      requests_(MakeCounter(registry, "neurontrace_aggregator_page_requests_total",
                            "Requests at the page's port that were answered")),
      malformed_(MakeCounter(registry, kRefused, kRefusedHelp, {{"reason", "malformed"}})),
      foreign_(MakeCounter(registry, kRefused, kRefusedHelp, {{"reason", "foreign"}})),
      unknown_(MakeCounter(registry, kRefused, kRefusedHelp, {{"reason", "unauthenticated"}})),
      throttled_(MakeCounter(registry, kRefused, kRefusedHelp, {{"reason", "wrong_tokens"}})),
      received_bytes_(MakeCounter(registry, "neurontrace_aggregator_page_received_bytes_total",
                                  "Bytes of requests at the page's port")),
      sent_bytes_(MakeCounter(registry, "neurontrace_aggregator_page_sent_bytes_total",
                              "Bytes of answers at the page's port")),
      answer_seconds_(MakeCounter(registry, "neurontrace_aggregator_page_answer_seconds_total",
                                  "Time in which answers of the page were made")),
      sessions_(MakeGauge(registry, "neurontrace_aggregator_page_sessions",
                          "Browsers that have signed in with a token")),
      begun_(MakeCounter(registry, "neurontrace_aggregator_page_sessions_total",
                         "Sessions of browsers that have begun")),
      crowded_sessions_(MakeCounter(registry, "neurontrace_aggregator_page_sessions_refused_total",
                                    "Sessions refused because there are too many")),
      signed_out_(MakeCounter(registry, kEnded, kEndedHelp, {{"reason", "signed_out"}})),
      expired_(MakeCounter(registry, kEnded, kEndedHelp, {{"reason", "expired"}})),
      displaced_(MakeCounter(registry, kEnded, kEndedHelp, {{"reason", "displaced"}})) {}

void PageMetrics::Publish(const Sums& sums) {
  const auto raise = [](prometheus::Counter& counter, uint64_t sum) {
    RaiseCounter(counter, static_cast<double>(sum));
  };
  connections_.Set(static_cast<double>(sums.server.open));
  raise(accepted_, sums.server.connections);
  raise(crowded_, sums.server.refused_connections);
  raise(failed_handshakes_, sums.server.failed_handshakes);
  raise(requests_, sums.server.requests);
  raise(malformed_, sums.server.malformed_requests);
  raise(foreign_, sums.foreign);
  raise(unknown_, sums.unknown);
  raise(throttled_, sums.throttled);
  raise(received_bytes_, sums.server.received_bytes);
  raise(sent_bytes_, sums.server.sent_bytes);
  RaiseCounter(answer_seconds_, static_cast<double>(sums.server.answer_ns) * 1e-9);
  sessions_.Set(static_cast<double>(sums.sessions.open));
  raise(begun_, sums.sessions.begun);
  raise(crowded_sessions_, sums.sessions.refused);
  raise(signed_out_, sums.sessions.signed_out);
  raise(expired_, sums.sessions.expired);
  raise(displaced_, sums.sessions.displaced);
}

}  // namespace neurontrace
