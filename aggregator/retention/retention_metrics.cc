// SPDX-License-Identifier: Apache-2.0
#include "aggregator/retention/retention_metrics.h"

#include "health/metric_builders.h"

namespace neurontrace {
RetentionMetrics::RetentionMetrics(prometheus::Registry& registry)
    : events_expired(MakeCounter(registry, "neurontrace_aggregator_expired_events_total",
                                 "Events of continuous captures deleted by their retention")),
      bytes_expired(
          MakeCounter(registry, "neurontrace_aggregator_expired_bytes_total",
                      "Bytes of chunks of continuous captures deleted by their retention")),
      trims(MakeCounter(registry, "neurontrace_aggregator_trims_total",
                        "Steps of deletion from continuous captures")),
      trim_seconds(MakeCounter(registry, "neurontrace_aggregator_trim_seconds_total",
                               "Time that these steps took")),
      captures_deleted(MakeCounter(registry, "neurontrace_aggregator_captures_expired_total",
                                   "Ended captures deleted by their retention")),
      errors(MakeCounter(registry, "neurontrace_aggregator_retention_errors_total",
                         "Passes over a capture that failed, and are tried again")),
      step_seconds_max(MakeGauge(registry, "neurontrace_aggregator_trim_step_seconds_max",
                                 "The longest step since the start: so long did writers wait")),
      streams_by_receipt(MakeGauge(
          registry, "neurontrace_aggregator_retention_streams_by_receipt",
          "Streams of continuous captures whose stamps make no sense, and whose age is told "
          "by when their chunks came")) {}

}  // namespace neurontrace
