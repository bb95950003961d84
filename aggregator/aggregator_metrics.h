// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <optional>

#include "health/metric_builders.h"
#include "trace/worker_info.h"
#include "wire/security_watch.h"

namespace neurontrace {

// What the aggregator as a whole says of itself; docs/operations.md has the words. The registry
// owns them. Any thread.
struct AggregatorMetrics {
  explicit AggregatorMetrics(prometheus::Registry& registry);

  prometheus::Gauge& agents_connected;
  prometheus::Gauge& workers;
  prometheus::Gauge& captures_running;
  prometheus::Gauge& captures_stored;
  prometheus::Gauge& store_bytes;
  prometheus::Gauge& chunks_damaged;
  prometheus::Gauge& streams_live;
  prometheus::Counter& exports;
  prometheus::Counter& exports_refused;
  prometheus::Counter& exports_unread;
  prometheus::Gauge& exports_running;
  prometheus::Counter& watches_refused;
  prometheus::Counter& watches_unread;
  prometheus::Counter& audit_failures;
  prometheus::Gauge& secret_files_open;
  prometheus::Counter& handshakes_failed;
  prometheus::Counter& connections_refused_descriptors;
  prometheus::Counter& connections_refused_address;
  prometheus::Counter& captures_begun;
  prometheus::Counter& captures_not_begun;
  prometheus::Histogram& arm_seconds;
  prometheus::Histogram& begin_lead_seconds;

  // Nothing: the gauge is not there. One thread.
  void SetCanaryAge(std::optional<uint64_t> age_ns);
  // In seconds since 1970; likewise. One thread.
  void SetSecurityEnds(const SecurityEnds& ends);
  // Where there is a file of access. One thread.
  void SetAccessFileGood(bool is_good);
  // Workers that were selected and could not take part. One thread.
  void CountRefused(CaptureObstacle obstacle, uint32_t workers);

 private:
  OptionalGauge canary_age_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
  OptionalGauge access_file_good_;
  prometheus::Family<prometheus::Counter>& workers_refused_;
};

}  // namespace neurontrace
