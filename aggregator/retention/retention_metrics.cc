// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/retention_metrics.h"

namespace neurontrace {
namespace {

prometheus::Gauge& Gauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& Counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

RetentionMetrics::RetentionMetrics(prometheus::Registry& registry)
    : events_expired(Counter(registry, "neurontrace_aggregator_expired_events_total",
                             "Events of continuous captures deleted by their retention")),
      bytes_expired(Counter(registry, "neurontrace_aggregator_expired_bytes_total",
                            "Bytes of chunks of continuous captures deleted by their retention")),
      trims(Counter(registry, "neurontrace_aggregator_trims_total",
                    "Steps of deletion from continuous captures")),
      trim_seconds(Counter(registry, "neurontrace_aggregator_trim_seconds_total",
                           "Time that these steps took")),
      captures_deleted(Counter(registry, "neurontrace_aggregator_captures_expired_total",
                               "Ended captures deleted by their retention")),
      errors(Counter(registry, "neurontrace_aggregator_retention_errors_total",
                     "Passes over a capture that failed, and are tried again")),
      step_seconds_max(Gauge(registry, "neurontrace_aggregator_trim_step_seconds_max",
                             "The longest step since the start: so long did writers wait")),
      streams_by_receipt(
          Gauge(registry, "neurontrace_aggregator_retention_streams_by_receipt",
                "Streams of continuous captures whose stamps make no sense, and whose age is told "
                "by when their chunks came")) {}

}  // namespace neurontrace
