// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
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

// Returns the deviation that a normal distribution with this median absolute deviation has.
// Overwrites the values.
inline double RobustDeviation(std::vector<double>& values) {
  const double median = MedianOf(values);
  for (double& value : values) value = std::abs(value - median);
  return insight_rule::kMadToDeviation * MedianOf(values);
}

}  // namespace neurontrace
