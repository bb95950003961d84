// SPDX-License-Identifier: Apache-2.0
// What is noted of simulated cores is as causal as the real thing: brackets enclose their
// executions, sync points are one-sided.
#include "tests/clock_sim/device_world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/clock_sim/device_trial.h"

namespace neurontrace {
namespace {

TEST(DeviceWorld, BracketsEncloseTheirExecutions) {
  for (const DeviceScenario& scenario : DeviceScenarios()) {
    const Device device = PlayDevice(scenario, 5);
    ASSERT_GT(device.records.executions.size(), 40u) << scenario.name;
    ASSERT_EQ(device.stamps.size(), device.truth_ns.size());
    for (size_t i = 0; i < device.stamps.size(); ++i) {
      const DeviceRecords::Execution& execution =
          device.records.executions[device.stamps[i].execution];
      const uint64_t least = static_cast<uint64_t>(scenario.bracket_least_ns);
      ASSERT_LE(execution.submit_ns + least, device.truth_ns[i]) << scenario.name;
      ASSERT_GE(execution.complete_ns, device.truth_ns[i] + least) << scenario.name;
      ASSERT_LE(execution.start_ns, device.stamps[i].device_ns);
      ASSERT_GE(execution.end_ns, device.stamps[i].device_ns);
    }
  }
}

TEST(DeviceWorld, TheCounterRunsForwardButForItsReset) {
  size_t resets = 0;
  for (const DeviceScenario& scenario : DeviceScenarios()) {
    const Device device = PlayDevice(scenario, 6);
    EXPECT_EQ(device.reset.has_value(), scenario.resets) << scenario.name;
    const std::vector<DeviceRecords::Execution>& executions = device.records.executions;
    for (size_t i = 1; i < executions.size(); ++i) {
      if (executions[i].start_ns > executions[i - 1].end_ns) continue;
      EXPECT_EQ(device.reset, i) << scenario.name;
      ++resets;
    }
  }
  EXPECT_EQ(resets, 1u);
}

// The rate of the counter is within 200 ppm, so that half a second moves nothing by more than 100
// us.
TEST(DeviceWorld, SyncPointsAreNearTheTruthUnlessCorrupt) {
  const Device device = PlayDevice(DeviceScenarios()[0], 7);
  size_t near = 0;
  size_t all = 0;
  for (size_t i = 0; i < device.stamps.size(); ++i) {
    const DeviceRecords::Execution& execution =
        device.records.executions[device.stamps[i].execution];
    if (device.stamps[i].device_ns != execution.end_ns || !execution.sync) continue;
    const auto host = static_cast<int64_t>(execution.sync->host_ns - device.truth_ns[i]);
    const auto counter = static_cast<int64_t>(execution.sync->device_ns - execution.end_ns);
    EXPECT_EQ(execution.sync->exec_id, execution.exec_id);
    near += std::abs(host - counter) < 20'000 ? 1 : 0;
    ++all;
  }
  EXPECT_GT(all, 300u);
  EXPECT_GT(near * 10, all * 9);
  EXPECT_LT(near, all);  // there is a tail
}

TEST(DeviceTrial, VendorBaselineScoresAsExpected) {
  const std::vector<DeviceScore> scores =
      RunDeviceTrial(DeviceScenarios()[0], DeviceBaselines(), 1);
  EXPECT_LT(scores[0].error.Quantile(0.5), 10e3);
  EXPECT_GT(scores[0].error.Quantile(0.99), 10e3);
  EXPECT_LT(scores[0].brackets.held, scores[0].brackets.of);
}

}  // namespace
}  // namespace neurontrace
