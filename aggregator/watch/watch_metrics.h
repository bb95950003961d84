// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "aggregator/insight/insight_report.h"
#include "aggregator/watch/core_feed.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {

// Metrics of verdicts while the fleet runs; docs/operator/metrics.md describes them. The registry
// owns them. One thread.
class WatchMetrics {
 public:
  explicit WatchMetrics(prometheus::Registry& registry);

  // Counts a verdict that began.
  void CountVerdict(VerdictKind kind);
  // Sets how many verdicts of each kind there are now.
  void SetVerdicts(const std::map<VerdictKind, uint32_t>& counts);
  // Sets the sums over all cores.
  void SetCounters(const CoreFeed::Counters& sums);

  prometheus::Gauge& cores;
  prometheus::Gauge& refused_cores;
  prometheus::Gauge& memory_bytes;
  prometheus::Gauge& queue_chunks;
  prometheus::Counter& dropped_chunks;
  prometheus::Counter& cores_not_judged;
  prometheus::Counter& verdicts_not_followed;
  prometheus::Counter& read_seconds;
  prometheus::Counter& judge_seconds;

 private:
  std::map<VerdictKind, prometheus::Counter*> begun_;  // one for each kind, from the start on
  std::map<VerdictKind, prometheus::Gauge*> current_;
  prometheus::Counter& events_;
  prometheus::Counter& late_;
  prometheus::Counter& unmatched_;
  prometheus::Counter& forgotten_;
};

}  // namespace neurontrace
