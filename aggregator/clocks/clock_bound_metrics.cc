// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_bound_metrics.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

// Returns the widest bounds, as many as are exported. Of equal bounds, keeps those with the greater
// instance id, so that the choice does not change from one call to the next.
std::map<std::string, uint64_t> WidestOf(const std::map<std::string, uint64_t>& bounds) {
  if (bounds.size() <= limits::kClockBoundSeriesMax) return bounds;
  std::vector<std::pair<uint64_t, std::string>> by_width;
  by_width.reserve(bounds.size());
  for (const auto& [instance, bound_ns] : bounds) by_width.emplace_back(bound_ns, instance);
  std::partial_sort(by_width.begin(), by_width.begin() + limits::kClockBoundSeriesMax,
                    by_width.end(), std::greater<>());
  std::map<std::string, uint64_t> widest;
  for (size_t i = 0; i < limits::kClockBoundSeriesMax; ++i) {
    widest.emplace(std::move(by_width[i].second), by_width[i].first);
  }
  return widest;
}

}  // namespace

ClockBoundMetrics::ClockBoundMetrics(prometheus::Registry& registry)
    : bounds_{MakeGaugeFamily(registry, "neurontrace_aggregator_clock_bound_seconds",
                              "Error bound of an instance's clock relative to the reference"),
              "instance_id",
              {}},
      left_out_(MakeGauge(registry, "neurontrace_aggregator_clock_bounds_left_out",
                          "Instances whose error bound is omitted because there are too many")) {}

void ClockBoundMetrics::Publish(const std::map<std::string, uint64_t>& bounds) {
  const std::map<std::string, uint64_t> shown = WidestOf(bounds);
  left_out_.Set(static_cast<double>(bounds.size() - shown.size()));
  // The factor turns ns into the seconds that Prometheus expects.
  bounds_.Set(shown, 1e-9);
}

}  // namespace neurontrace
