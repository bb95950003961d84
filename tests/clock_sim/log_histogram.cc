// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/log_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace neurontrace {
namespace {

// The bits of a double above the lowest 46: exponent, and 64 steps to each doubling. From 2^-10 on.
constexpr int kShift = 46;
constexpr uint64_t kFirst = uint64_t{1023 - 10} << (52 - kShift);

size_t BucketOf(double value) {
  const uint64_t top = std::bit_cast<uint64_t>(value) >> kShift;
  return top <= kFirst ? 0 : static_cast<size_t>(top - kFirst);
}

double UpperEdge(size_t bucket) {
  return std::bit_cast<double>((static_cast<uint64_t>(bucket) + kFirst + 1) << kShift);
}

}  // namespace

void LogHistogram::Add(double value, uint64_t times) {
  value = std::min(std::abs(value), 1e30);
  const size_t bucket = BucketOf(value);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  buckets_[bucket] += times;
  count_ += times;
  max_ = std::max(max_, value);
}

void LogHistogram::Merge(const LogHistogram& other) {
  if (other.buckets_.size() > buckets_.size()) buckets_.resize(other.buckets_.size());
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

double LogHistogram::Quantile(double share) const {
  const uint64_t wanted = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= wanted && seen > 0) return std::min(UpperEdge(bucket), max_);
  }
  return max_;
}

}  // namespace neurontrace
