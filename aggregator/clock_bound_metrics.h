// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <string>

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
  prometheus::Family<prometheus::Gauge>& bounds_;
  std::map<std::string, prometheus::Gauge*> gauges_;
  prometheus::Gauge& left_out_;
};

}  // namespace neurontrace
