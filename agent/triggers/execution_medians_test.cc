// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/execution_medians.h"

#include <gtest/gtest.h>

#include "agent/triggers/running_median.h"

namespace neurontrace {
namespace {

TEST(ExecutionMedians, ForgetsTheModelThatRanLongestAgo) {
  ExecutionMedians medians;
  uint64_t id = 0;
  const auto run = [&](uint64_t model, uint64_t ns) {
    medians.Begin({.tracking_id = ++id, .execution = id, .model = model, .host_ns = 1});
    return medians.End({.tracking_id = id, .host_ns = 1 + ns});
  };
  for (uint64_t model = 0; model <= ExecutionMedians::kModelsMax; ++model) {
    for (size_t i = 0; i < RunningMedian::kEnough; ++i) run(model, 100);
  }
  EXPECT_TRUE(run(1, 100).has_value());
  EXPECT_FALSE(run(0, 100).has_value());
}

TEST(ExecutionMedians, ReportsUnendedExecutionOncePerRule) {
  ExecutionMedians medians;
  for (uint64_t id = 1; id <= RunningMedian::kEnough; ++id) {
    medians.Begin({.tracking_id = id, .execution = id, .model = 1, .host_ns = 1});
    medians.End({.tracking_id = id, .host_ns = 101});
  }
  medians.Begin({.tracking_id = 77, .execution = 77, .model = 1, .host_ns = 1, .read_ns = 1});
  const uint64_t now_ns = 1 + ExecutionMedians::kUnendedMinNs;
  for (uint32_t rule = 0; rule < limits::kTriggerRulesMax; ++rule) {
    EXPECT_TRUE(medians.FindUnended(now_ns, 2, rule).has_value()) << rule;
    EXPECT_FALSE(medians.FindUnended(now_ns, 2, rule).has_value()) << rule;
  }
}

}  // namespace
}  // namespace neurontrace
