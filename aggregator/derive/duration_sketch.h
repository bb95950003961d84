// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// Count, sum, extremes and quantiles of durations in bounded memory. Values below 16 ns are kept
// exactly; of larger ones each power of two has 16 bins, so that a quantile is off by at most 1/32
// of itself. At most 976 bins, and only as many as were used. A plain value; two can be merged.
class DurationSketch {
 public:
  void Add(uint64_t duration_ns);
  void Merge(const DurationSketch& other);

  uint64_t count() const { return count_; }
  uint64_t sum_ns() const { return sum_ns_; }  // UINT64_MAX where it is more than that
  uint64_t min_ns() const { return count_ == 0 ? 0 : min_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  uint64_t mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / count_; }
  // The duration that the fraction `q` of all (0 to 1) does not exceed: the middle of its bin,
  // never beyond the extremes. 0 where there is none.
  uint64_t QuantileNs(double q) const;

 private:
  struct Bin {
    uint16_t number = 0;
    uint64_t count = 0;
  };
  void AddTo(uint16_t bin, uint64_t count);

  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t min_ns_ = UINT64_MAX;
  uint64_t max_ns_ = 0;
  std::vector<Bin> bins_;  // ascending in number
  size_t latest_ = 0;      // index of the bin used last: the next is often the same
};

}  // namespace neurontrace
