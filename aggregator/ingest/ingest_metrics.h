// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

namespace neurontrace {

// Counts the results of chunk admission (docs/operator/metrics.md). The registry owns the metrics.
// Any thread.
struct IngestMetrics {
  // Creates all metrics, so that each is exported with 0 from the start.
  explicit IngestMetrics(prometheus::Registry& registry);

  // What was stored, without duplicates.
  prometheus::Counter& chunks_stored;
  prometheus::Counter& events_stored;
  prometheus::Counter& bytes_stored;
  prometheus::Counter& canaries_stored;
  // Chunks that were already stored: sent again with the same content, and with different content.
  prometheus::Counter& chunks_duplicate;
  prometheus::Counter& chunks_conflicting;
  // Refused chunks by reason; agents send those again that were refused as busy or because of a
  // gap.
  prometheus::Counter& refused_malformed;
  prometheus::Counter& refused_unknown_capture;
  prometheus::Counter& refused_limit;
  prometheus::Counter& refused_gap;
  prometheus::Counter& refused_busy;
  // Failed writes of groups; a group may contain many chunks.
  prometheus::Counter& store_errors;
  // The present state: received and not yet durable, and calls that wait for room in the budget.
  prometheus::Gauge& bytes_in_flight;
  prometheus::Gauge& calls_waiting;
  prometheus::Gauge& upload_calls;
  // Of each group commit: its duration with the sync, and its number of chunks.
  prometheus::Histogram& commit_seconds;
  prometheus::Histogram& commit_chunks;
};

}  // namespace neurontrace
