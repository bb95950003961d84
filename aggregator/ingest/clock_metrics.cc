// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/clock_metrics.h"

#include "health/metric_builders.h"

namespace neurontrace {
ClockMetrics::ClockMetrics(prometheus::Registry& registry)
    : batches_stored(MakeCounter(registry, "neurontrace_aggregator_clock_batches_stored_total",
                                 "Batches of clock evidence stored durably")),
      bytes_stored(MakeCounter(registry, "neurontrace_aggregator_clock_bytes_stored_total",
                               "Bytes of these")),
      batches_refused(MakeCounter(registry, "neurontrace_aggregator_clock_batches_refused_total",
                                  "Batches of clock evidence that made no sense")),
      batches_over_limit(
          MakeCounter(registry, "neurontrace_aggregator_clock_batches_over_limit_total",
                      "Batches of clock evidence beyond what may be stored of their instance")),
      batches_pruned(MakeCounter(registry, "neurontrace_aggregator_clock_batches_pruned_total",
                                 "Batches of clock evidence removed because of their age")),
      own_batches_dropped(
          MakeCounter(registry, "neurontrace_aggregator_clock_own_batches_dropped_total",
                      "Batches of evidence of the aggregator's own clocks that its store took "
                      "none of")),
      store_errors(MakeCounter(registry, "neurontrace_aggregator_clock_store_errors_total",
                               "Writes of clock evidence that the store refused")),
      questions_answered(MakeCounter(registry,
                                     "neurontrace_aggregator_clock_questions_answered_total",
                                     "Clock probes answered in gRPC calls")),
      calls(MakeGauge(registry, "neurontrace_aggregator_clock_calls",
                      "Agents that report about their clocks now")),
      reference_epoch(MakeGauge(registry, "neurontrace_aggregator_reference_epoch",
                                "Which run of the reference timescale this is")) {}

}  // namespace neurontrace
