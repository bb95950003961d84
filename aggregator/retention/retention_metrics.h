// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

namespace neurontrace {

// What retention says of itself; docs/operations.md has the words. The registry owns them. Any
// thread.
struct RetentionMetrics {
  explicit RetentionMetrics(prometheus::Registry& registry);

  prometheus::Counter& events_expired;
  prometheus::Counter& bytes_expired;
  prometheus::Counter& trims;
  prometheus::Counter& trim_seconds;
  prometheus::Counter& captures_deleted;
  prometheus::Counter& errors;
  prometheus::Gauge& step_seconds_max;
  prometheus::Gauge& streams_by_receipt;
};

}  // namespace neurontrace
