// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace neurontrace {

// How often a figure of 0 or more came: its quantiles within 1.6 % and its greatest exactly, in as
// little memory whatever the number of figures. Adding up histograms in any order gives the same.
class LogHistogram {
 public:
  void Add(double value, uint64_t times = 1);
  void Merge(const LogHistogram& other);

  uint64_t count() const { return count_; }
  double max() const { return max_; }
  // The least figure that `share` (0 to 1) of all do not exceed; 0 without any.
  double Quantile(double share) const;

 private:
  std::vector<uint64_t> buckets_;
  uint64_t count_ = 0;
  double max_ = 0;
};

}  // namespace neurontrace
