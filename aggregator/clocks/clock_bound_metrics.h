// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <string>

#include "lib/health/metric_builders.h"

namespace neurontrace {

// How well the clock of each instance is known, as a Prometheus gauge by instance; one that is not
// known is not there. At most limits::kClockBoundSeriesMax have one: beyond that the best known are
// left out, and counted, so that what is wide is seen. One thread.
class ClockBoundMetrics {
 public:
  // The registry owns the metrics.
  explicit ClockBoundMetrics(prometheus::Registry& registry);

  // Bounds in nanoseconds, by instance.
  void Publish(const std::map<std::string, uint64_t>& bounds);

 private:
  GaugesByLabel<std::string> bounds_;
  prometheus::Gauge& left_out_;
};

}  // namespace neurontrace
