// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace neurontrace {

// Count, sum, extremes and quantiles of durations in bounded memory. Values below 16 ns are kept
// exactly. Larger ones go into bins, 16 for each power of two, as in HdrHistogram
// (http://hdrhistogram.org), so that a quantile is off by at most 1/32 of itself. At most 976 bins,
// and only those in use. A plain value; two can be merged.
class DurationSketch {
 public:
  struct Bin {
    uint16_t number = 0;
    uint64_t count = 0;
    friend bool operator==(const Bin&, const Bin&) = default;
  };
  // Returns the sketch with these parts, as it was when bins(), sum_ns(), min_ns() and max_ns()
  // were stored; nullopt if no sketch has them.
  static std::optional<DurationSketch> FromParts(std::vector<Bin> bins, uint64_t sum_ns,
                                                 uint64_t min_ns, uint64_t max_ns);

  void Add(uint64_t duration_ns);
  // The result is the same as if all values had been added to one sketch.
  void Merge(const DurationSketch& other);

  uint64_t count() const { return count_; }
  // Saturates at UINT64_MAX.
  uint64_t sum_ns() const { return sum_ns_; }
  uint64_t min_ns() const { return count_ == 0 ? 0 : min_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  uint64_t mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / count_; }
  // Returns the duration that the fraction `q` (0 to 1) of all does not exceed: the middle of its
  // bin, but never beyond the extremes. Returns 0 if there is none.
  uint64_t QuantileNs(double q) const;
  const std::vector<Bin>& bins() const { return bins_; }  // ascending in number

 private:
  // Keeps bins_ sorted; `latest_` is only a hint.
  void AddTo(uint16_t bin, uint64_t count);

  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t min_ns_ = UINT64_MAX;
  uint64_t max_ns_ = 0;
  std::vector<Bin> bins_;  // ascending in number
  // Index of the bin used last: the next value often falls into the same.
  size_t latest_ = 0;
};

}  // namespace neurontrace
