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
  explicit AggregatorMetrics(prometheus::Registry& registry);

  prometheus::Gauge& agents_connected;
  prometheus::Gauge& workers;
  prometheus::Gauge& captures_running;
  prometheus::Gauge& captures_stored;
  prometheus::Gauge& store_bytes;
  prometheus::Gauge& chunks_damaged;
  prometheus::Gauge& streams_live;
  prometheus::Counter& watches_refused;
  prometheus::Counter& watches_unread;
  prometheus::Gauge& secret_files_open;

  // nullopt removes the gauge. One thread.
  void SetCanaryAge(std::optional<uint64_t> age_ns);
  // Sets expiry times, in seconds since 1970; unknown ones remove their gauge. One thread.
  void SetSecurityEnds(const SecurityEnds& ends);

 private:
  OptionalGauge canary_age_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
};

}  // namespace neurontrace
