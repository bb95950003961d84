// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <vector>

#include "aggregator/insight/insight_rule.h"

namespace neurontrace {

// Returns the median, or 0 of nothing. Reorders the values.
inline double MedianOf(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Returns the deviation that a normal distribution with this median absolute deviation has;
// `median` is that of the values. Overwrites the values.
inline double RobustDeviation(std::vector<double>& values, double median) {
  for (double& value : values) value = std::abs(value - median);
  return insight_rule::kMadToDeviation * MedianOf(values);
}

inline double RobustDeviation(std::vector<double>& values) {
  return RobustDeviation(values, MedianOf(values));
}

// Returns the mean, or 0 of nothing.
inline double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

enum class Average : uint8_t { kMedian = 0, kMean };

// Reorders the values.
inline double AverageOf(std::vector<double>& values, Average average) {
  return average == Average::kMean ? MeanOf(values) : MedianOf(values);
}

// Returns the deviation that independent values of a normal distribution with these changes from
// one to the next have. A step in the values is one change only. Overwrites the values.
inline double DeviationOfChanges(std::vector<double>& values) {
  if (values.size() < 2) return 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) values[i] = std::abs(values[i + 1] - values[i]);
  values.pop_back();
  return insight_rule::kMadToDeviation * MedianOf(values) / std::numbers::sqrt2;
}

// Returns the z that so few of `comparisons` values of a normal distribution exceed by chance:
// kChanceCoresMax, or less at kZMin.
inline double LeastZ(double comparisons) {
  const auto by_chance = [&](double z) {
    return comparisons * std::erfc(z / std::numbers::sqrt2) / 2;
  };
  double low = insight_rule::kZMin;
  if (by_chance(low) <= insight_rule::kChanceCoresMax) return low;
  double high = 2 * low;  // of 1e26 comparisons
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (by_chance(middle) <= insight_rule::kChanceCoresMax ? high : low) = middle;
  }
  return high;
}

}  // namespace neurontrace
