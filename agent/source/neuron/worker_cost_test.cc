// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap_worker.h"

#include <gtest/gtest.h>

#include "agent/source/neuron/worker_cost.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

TEST(WorkerCost, SumsTapAndAgent) {
  WorkerCost cost;
  cost.Observe(kNsPerSecond, 5'000'000, 100);
  EXPECT_FALSE(cost.recent());
  cost.AddAgent(3'000'000);
  cost.Observe(3 * kNsPerSecond, 12'000'000, 4'100);
  EXPECT_EQ(cost.core_ns(), 10'000'000u);
  ASSERT_TRUE(cost.recent());
  EXPECT_DOUBLE_EQ(cost.recent()->core_ppm, 5'000);
  EXPECT_DOUBLE_EQ(cost.recent()->bytes_per_second, 2'000);
}

TEST(WorkerCost, IgnoresEarlierCost) {
  WorkerCost cost;
  cost.Observe(kNsPerSecond, UINT64_MAX / 2, 0);
  EXPECT_EQ(cost.core_ns(), 0u);
}

// The counter is in memory that the worker can write to.
TEST(WorkerCost, ATapCannotClaimMoreThanAllOfTheTime) {
  WorkerCost cost;
  cost.Observe(0, 0, 0);
  cost.Observe(kNsPerSecond, UINT64_MAX, 0);
  EXPECT_EQ(cost.core_ns(), kNsPerSecond);
  cost.Observe(2 * kNsPerSecond, 7, 0);
  EXPECT_EQ(cost.core_ns(), kNsPerSecond);
  cost.Observe(3 * kNsPerSecond, 8, 0);
  EXPECT_EQ(cost.core_ns(), kNsPerSecond + 1);
  cost.Observe(2 * kNsPerSecond, 9'000'000, 0);  // a clock that goes back restarts it
  EXPECT_EQ(cost.core_ns(), kNsPerSecond + 1);
}

TEST(WorkerCost, TheThreadsTimeGrows) {
  const uint64_t before = ReadThreadCpuNs();
  uint64_t after = before;
  while (after == before) after = ReadThreadCpuNs();
  EXPECT_GT(after, before);
}

}  // namespace
}  // namespace neurontrace
