// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/ingest_metrics.h"

#include "lib/health/metric_builders.h"

namespace neurontrace {
namespace {

// Returns the counter of one reason. The words are part of the metrics' documented interface.
prometheus::Counter& Refused(prometheus::Registry& registry, const char* reason) {
  return MakeCounter(registry, "neurontrace_aggregator_chunks_refused_total",
                     "Chunks not stored, by the reason reported to the agent",
                     {{"reason", reason}});
}

}  // namespace

IngestMetrics::IngestMetrics(prometheus::Registry& registry)
    : chunks_stored(MakeCounter(registry, "neurontrace_aggregator_chunks_stored_total",
                                "Chunks stored durably")),
      events_stored(MakeCounter(registry, "neurontrace_aggregator_events_stored_total",
                                "Events in the chunks stored")),
      bytes_stored(MakeCounter(registry, "neurontrace_aggregator_chunk_bytes_stored_total",
                               "Bytes of the chunks stored, compressed")),
      canaries_stored(MakeCounter(registry, "neurontrace_aggregator_canaries_stored_total",
                                  "Stream canaries received")),
      chunks_duplicate(MakeCounter(registry, "neurontrace_aggregator_chunks_duplicate_total",
                                   "Duplicate chunks dropped")),
      chunks_conflicting(
          MakeCounter(registry, "neurontrace_aggregator_chunks_conflicting_total",
                      "Chunks dropped because they were sent again with different contents")),
      refused_malformed(Refused(registry, "malformed")),
      refused_unknown_capture(Refused(registry, "unknown_capture")),
      refused_limit(Refused(registry, "limit")),
      refused_gap(Refused(registry, "gap")),
      refused_busy(Refused(registry, "busy")),
      store_errors(MakeCounter(registry, "neurontrace_aggregator_store_errors_total",
                               "Failed writes of chunks to the store")),
      bytes_in_flight(MakeGauge(registry, "neurontrace_aggregator_ingest_bytes_in_flight",
                                "Bytes of chunks received and not yet durable")),
      calls_waiting(MakeGauge(registry, "neurontrace_aggregator_ingest_calls_waiting",
                              "Upload calls paused until there is room")),
      upload_calls(MakeGauge(registry, "neurontrace_aggregator_upload_calls", "Upload calls open")),
      commit_seconds(MakeHistogram(registry, "neurontrace_aggregator_commit_seconds",
                                   "Duration of a group commit, including the sync",
                                   {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 2})),
      commit_chunks(MakeHistogram(registry, "neurontrace_aggregator_commit_chunks",
                                  "Chunks in one group commit",
                                  {1, 2, 4, 8, 16, 32, 64, 128, 256, 1024})) {}

}  // namespace neurontrace
