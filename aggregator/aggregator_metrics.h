// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <optional>

#include "lib/health/metric_builders.h"
#include "lib/wire/security_watch.h"

namespace neurontrace {

// Metrics of the aggregator as a whole (docs/operator/metrics.md). The registry owns them. Any
// thread, except for the two functions.
struct AggregatorMetrics {
  // Creates all metrics except the three optional gauges. `registry` must outlive this.
  explicit AggregatorMetrics(prometheus::Registry& registry);

  // The present state of agents and captures.
  prometheus::Gauge& agents_connected;
  prometheus::Gauge& workers;
  prometheus::Gauge& captures_running;
  prometheus::Gauge& captures_stored;
  // Of the store.
  prometheus::Gauge& store_bytes;
  prometheus::Gauge& chunks_damaged;
  prometheus::Gauge& streams_live;
  // Calls of StreamingCallLimiter.
  prometheus::Counter& watches_refused;
  prometheus::Counter& watches_unread;
  prometheus::Gauge& secret_files_open;

  // Sets the gauge; nullopt removes it. One thread.
  void SetCanaryAge(std::optional<uint64_t> age_ns);
  // Sets expiry times, in seconds since 1970; unknown ones remove their gauge. One thread.
  void SetSecurityEnds(const SecurityEnds& ends);

 private:
  // Exist only while a value is known.
  OptionalGauge canary_age_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
};

}  // namespace neurontrace
