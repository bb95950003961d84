// SPDX-License-Identifier: Apache-2.0
// Goal: the figures of noise are right where values jump or are few, and z grows with the number of
// comparisons. Method: values whose figures are known.
#include "aggregator/insight/robust_figures.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(RobustFiguresTest, AStepIsNoNoise) {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) values.push_back((i < 20 ? 0 : 5) + (i % 2 == 0 ? 0.1 : -0.1));
  std::vector<double> changes = values;
  EXPECT_NEAR(DeviationOfChanges(changes), 1.4826 * 0.2 / 1.4142, 1e-3);
  EXPECT_GT(RobustDeviation(values), 3);
}

TEST(RobustFiguresTest, OneValueHasNoChanges) {
  std::vector<double> values = {7};
  EXPECT_EQ(DeviationOfChanges(values), 0);
}

TEST(RobustFiguresTest, AMeanHasWhatAMedianLeavesOut) {
  std::vector<double> values = {0, 0, 0, 8};
  EXPECT_EQ(AverageOf(values, Average::kMean), 2);
  EXPECT_EQ(AverageOf(values, Average::kMedian), 0);
  EXPECT_EQ(MeanOf({}), 0);
}

TEST(RobustFiguresTest, ZGrowsWithTheComparisons) {
  EXPECT_EQ(LeastZ(100), insight_rule::kZMin);
  EXPECT_NEAR(LeastZ(5'000), 6.26, 0.02);      // 2e-10 of a normal distribution
  EXPECT_NEAR(LeastZ(5'000'000), 7.24, 0.03);  // 2e-13
}

}  // namespace
}  // namespace neurontrace
