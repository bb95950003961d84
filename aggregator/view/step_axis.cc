// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/step_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace neurontrace {

size_t StepAxis::ColumnOf(uint64_t step, HeatMatrix& matrix) {
  assert(matrix.columns() == columns_max_);
  while (step / steps_per_column_ >= columns_max_) {
    matrix.MergeColumns();
    steps_per_column_ *= 2;
    for (size_t column = 0; column < times_.size(); ++column) {
      const Times times = times_[column];
      if (column % 2 == 0) times_[column / 2] = {};
      Times& merged = times_[column / 2];
      merged.begin_ns = std::min(merged.begin_ns, times.begin_ns);
      merged.end_ns = std::max(merged.end_ns, times.end_ns);
    }
    times_.resize((times_.size() + 1) / 2);
  }
  const auto column = static_cast<size_t>(step / steps_per_column_);
  if (column >= times_.size()) times_.resize(column + 1);
  return column;
}

void StepAxis::Extend(size_t column, uint64_t begin_ns, uint64_t end_ns) {
  times_[column].begin_ns = std::min(times_[column].begin_ns, begin_ns);
  times_[column].end_ns = std::max(times_[column].end_ns, end_ns);
}

HeatSteps StepAxis::Describe(const std::vector<uint64_t>& numbers, std::string_view source) const {
  HeatSteps steps{.steps_per_column = steps_per_column_, .source = source};
  for (size_t column = 0; column < times_.size(); ++column) {
    const uint64_t step = column * steps_per_column_;
    steps.first.push_back(fmt::format("{}", numbers.empty() ? step : numbers[step]));
    const bool is_known = times_[column].begin_ns <= times_[column].end_ns;
    steps.begin_ns.push_back(is_known ? times_[column].begin_ns : 0);
    steps.end_ns.push_back(is_known ? times_[column].end_ns : 0);
  }
  return steps;
}

}  // namespace neurontrace
