// SPDX-License-Identifier: Apache-2.0
// Goal: quantiles are within their promise and nothing is counted twice. Method: known values, and
// random ones against sorting.
#include "aggregator/derive/duration_sketch.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace neurontrace {
namespace {

TEST(DurationSketchTest, SmallValuesAreExact) {
  DurationSketch sketch;
  for (uint64_t i = 0; i < 16; ++i) sketch.Add(i);
  EXPECT_EQ(sketch.count(), 16u);
  EXPECT_EQ(sketch.sum_ns(), 120u);
  EXPECT_EQ(sketch.QuantileNs(0), 0u);
  EXPECT_EQ(sketch.QuantileNs(0.5), 7u);
  EXPECT_EQ(sketch.QuantileNs(1), 15u);
}

TEST(DurationSketchTest, QuantilesAreWithinOneThirtySecond) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> length(12, 3);
  DurationSketch sketch;
  DurationSketch anomalous;
  DurationSketch even;
  std::vector<uint64_t> all;
  for (int i = 0; i < 20'000; ++i) {
    all.push_back(static_cast<uint64_t>(length(random)));
    sketch.Add(all.back());
    (i % 2 == 0 ? even : anomalous).Add(all.back());
  }
  even.Merge(anomalous);
  std::sort(all.begin(), all.end());
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.9999}) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(all.size())));
    const auto truth = static_cast<double>(all[rank - 1]);
    EXPECT_NEAR(static_cast<double>(sketch.QuantileNs(q)), truth, truth / 32 + 1) << q;
    EXPECT_EQ(sketch.QuantileNs(q), even.QuantileNs(q)) << "merging changes nothing";
  }
}

TEST(DurationSketchTest, TheLargestValuesNeitherWrapNorLeaveTheirBins) {
  DurationSketch sketch;
  sketch.Add(UINT64_MAX);
  sketch.Add(UINT64_MAX - 1);
  sketch.Add(0);
  EXPECT_EQ(sketch.sum_ns(), UINT64_MAX);
  EXPECT_EQ(sketch.max_ns(), UINT64_MAX);
  EXPECT_EQ(sketch.QuantileNs(1), UINT64_MAX);
  EXPECT_GT(sketch.QuantileNs(0.6), UINT64_MAX - UINT64_MAX / 16);
  EXPECT_EQ(DurationSketch().QuantileNs(0.5), 0u);
  EXPECT_EQ(DurationSketch().min_ns(), 0u);
}

}  // namespace
}  // namespace neurontrace
