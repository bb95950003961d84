// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clock_bound_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "trace/metrics_limits.h"

namespace neurontrace {
namespace {

std::map<std::string, double> GaugesOf(const prometheus::Registry& registry,
                                       const std::string& name) {
  std::map<std::string, double> values;
  for (const auto& family : registry.Collect()) {
    if (family.name != name) continue;
    for (const auto& metric : family.metric) {
      values[metric.label.empty() ? "" : metric.label[0].value] = metric.gauge.value;
    }
  }
  return values;
}

constexpr char kBound[] = "neurontrace_aggregator_clock_bound_seconds";
constexpr char kLeftOut[] = "neurontrace_aggregator_clock_bounds_left_out";

TEST(ClockBoundMetrics, AreThereWhileTheyAreKnown) {
  prometheus::Registry registry;
  ClockBoundMetrics metrics(registry);
  metrics.Publish({{"i-1", 20'000}, {"i-2", 3'000'000}});
  EXPECT_EQ(GaugesOf(registry, kBound).size(), 2u);
  EXPECT_DOUBLE_EQ(GaugesOf(registry, kBound).at("i-1"), 20e-6);
  metrics.Publish({{"i-2", 1'000}});
  EXPECT_EQ(GaugesOf(registry, kBound).size(), 1u);
  EXPECT_DOUBLE_EQ(GaugesOf(registry, kBound).at("i-2"), 1e-6);
  EXPECT_EQ(GaugesOf(registry, kLeftOut).at(""), 0);
}

TEST(ClockBoundMetrics, OfTooManyTheWidestStay) {
  prometheus::Registry registry;
  ClockBoundMetrics metrics(registry);
  std::map<std::string, uint64_t> bounds;
  for (uint64_t i = 0; i < limits::kClockBoundSeriesMax + 3; ++i) {
    bounds["i-" + std::to_string(i)] = 1'000 + i;
  }
  metrics.Publish(bounds);
  const auto shown = GaugesOf(registry, kBound);
  EXPECT_EQ(shown.size(), limits::kClockBoundSeriesMax);
  EXPECT_FALSE(shown.contains("i-0"));
  EXPECT_FALSE(shown.contains("i-2"));
  EXPECT_TRUE(shown.contains("i-3"));
  EXPECT_TRUE(shown.contains("i-" + std::to_string(limits::kClockBoundSeriesMax + 2)));
  EXPECT_EQ(GaugesOf(registry, kLeftOut).at(""), 3);
}

}  // namespace
}  // namespace neurontrace
