// SPDX-License-Identifier: Apache-2.0
// The goal: the running median is the median of the last values, whatever they are.
#include "agent/triggers/running_median.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

namespace neurontrace {
namespace {

TEST(RunningMedian, IsTheMedianOfTheLastValues) {
  RunningMedian median;
  std::deque<uint64_t> last;
  uint64_t random = 1;
  for (int i = 0; i < 5'000; ++i) {
    random = random * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
    const uint64_t value = i % 3 == 0 ? random >> 33 : (random >> 60);  // many equal ones
    median.Add(value);
    last.push_back(value);
    if (last.size() > RunningMedian::kWindow) last.pop_front();
    if (last.size() < RunningMedian::kEnough) {
      EXPECT_FALSE(median.Get().has_value());
      continue;
    }
    std::vector<uint64_t> sorted(last.begin(), last.end());
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(median.Get(), sorted[sorted.size() / 2]) << i;
  }
}

}  // namespace
}  // namespace neurontrace
