// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace neurontrace {

// What comes of clock evidence; docs/operations.md has the words. The registry owns them. Any
// thread.
struct ClockMetrics {
  explicit ClockMetrics(prometheus::Registry& registry);

  prometheus::Counter& batches_stored;
  prometheus::Counter& bytes_stored;
  prometheus::Counter& batches_refused;
  prometheus::Counter& batches_over_limit;
  prometheus::Counter& batches_pruned;
  prometheus::Counter& own_batches_dropped;  // of the aggregator's own clocks
  prometheus::Counter& store_errors;
  prometheus::Counter& questions_answered;  // in gRPC calls
  prometheus::Gauge& calls;
  prometheus::Gauge& reference_epoch;
};

}  // namespace neurontrace
