// SPDX-License-Identifier: Apache-2.0
#include "lib/health/metric_aliases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

prometheus::MetricFamily FamilyOf(const std::string& name, double value) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = "help";
  family.type = prometheus::MetricType::Counter;
  family.metric.resize(1);
  family.metric[0].counter.value = value;
  return family;
}

TEST(MetricAliasesTest, ServesRenamedMetricsUnderBothNames) {
  std::vector<prometheus::MetricFamily> families = {
      FamilyOf("neurontrace_agent_events_over_limit_total", 17), FamilyOf("unrelated_total", 1)};
  AddOldMetricNames(families);
  ASSERT_EQ(families.size(), 3u);
  EXPECT_EQ(families[2].name, "neurontrace_agent_events_unfit_total");
  EXPECT_EQ(families[2].metric[0].counter.value, 17);
  EXPECT_THAT(families[2].help, testing::HasSubstr("neurontrace_agent_events_over_limit_total"));
}

TEST(MetricAliasesTest, AddsNothingWithoutRenamedMetrics) {
  std::vector<prometheus::MetricFamily> families = {FamilyOf("unrelated_total", 1)};
  AddOldMetricNames(families);
  EXPECT_EQ(families.size(), 1u);
}

}  // namespace
}  // namespace neurontrace
