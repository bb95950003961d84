// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/health/metric_builders.h"

namespace neurontrace {

// Exports how well each instance's clock is known, as a Prometheus gauge by instance; an instance
// with an unknown clock has no value. At most limits::kClockBoundSeriesMax instances are exported.
// Beyond that the best known are omitted and counted, so that wide bounds remain visible. One
// thread. Published by Maintenance (aggregator/maintenance/maintenance.h).
class ClockBoundMetrics {
 public:
  // The registry owns the metrics and must outlive this.
  explicit ClockBoundMetrics(prometheus::Registry& registry);

  // Replaces the exported values. Bounds in ns, by instance id. Instances that are not in `bounds`
  // any more lose their series, so that the number of series stays limited.
  void Publish(const std::map<std::string, uint64_t>& bounds);

 private:
  // The gauges are in seconds, by instance id.
  GaugesByLabel<std::string> bounds_;
  prometheus::Gauge& left_out_;
};

}  // namespace neurontrace
