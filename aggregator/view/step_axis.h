// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/view/heat_matrix.h"

namespace neurontrace {

// The columns of a heat map by step, for any number of steps: if there are more than columns,
// neighbouring steps share a column, and the matrix keeps the worst value of them. Used by one
// thread at a time.
class StepAxis {
 public:
  // `columns_max` are the columns of the matrix.
  explicit StepAxis(uint32_t columns_max) : columns_max_(columns_max) {}

  // Returns the column of a step, counted from 0. Merges columns of `matrix` first if the step is
  // beyond them.
  size_t ColumnOf(uint64_t step, HeatMatrix& matrix);
  // Forgets all steps, for a matrix that is new.
  void Clear() {
    steps_per_column_ = 1;
    times_.clear();
  }
  // Records when a step of the column began and ended on a rank.
  void Extend(size_t column, uint64_t begin_ns, uint64_t end_ns);

  uint32_t columns() const { return static_cast<uint32_t>(times_.size()); }
  uint64_t steps_per_column() const { return steps_per_column_; }
  // Returns the description of the columns. `numbers` are the steps' own numbers; empty: they are
  // numbered from 0.
  HeatSteps Describe(const std::vector<uint64_t>& numbers, std::string_view source) const;

 private:
  struct Times {
    uint64_t begin_ns = UINT64_MAX;
    uint64_t end_ns = 0;
  };

  const uint32_t columns_max_;
  uint64_t steps_per_column_ = 1;
  std::vector<Times> times_;  // by column
};

}  // namespace neurontrace
