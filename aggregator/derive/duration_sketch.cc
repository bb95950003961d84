// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/duration_sketch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace neurontrace {
namespace {

// 16 bins for each power of two, see DurationSketch.
constexpr int kSubBits = 4;
constexpr uint64_t kSubBins = 1u << kSubBits;

// The bins of a floating-point number with four bits of mantissa, as in HdrHistogram: a bin's
// number is exponent and mantissa, so that numbers ascend with values.
uint16_t BinOf(uint64_t value) {
  if (value < kSubBins) return static_cast<uint16_t>(value);
  const int exponent = std::bit_width(value) - 1 - kSubBits;
  return static_cast<uint16_t>((static_cast<uint64_t>(exponent) << kSubBits) + (value >> exponent));
}

// Returns the middle of a bin.
uint64_t ValueOf(uint16_t bin) {
  if (bin < 2 * kSubBins) return bin;
  const int exponent = (bin >> kSubBits) - 1;
  const uint64_t low = (kSubBins + (bin & (kSubBins - 1))) << exponent;
  return low + ((uint64_t{1} << exponent) - 1) / 2;
}

// Sums saturate: hostile lengths must not wrap around to small figures.
uint64_t Plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

std::optional<DurationSketch> DurationSketch::FromParts(std::vector<Bin> bins, uint64_t sum_ns,
                                                        uint64_t min_ns, uint64_t max_ns) {
  DurationSketch sketch;
  if (bins.empty()) return sum_ns == 0 ? std::optional(sketch) : std::nullopt;
  for (const Bin& bin : bins) {
    const bool is_ascending = &bin == &bins.front() || (&bin - 1)->number < bin.number;
    if (!is_ascending || bin.count == 0 || bin.count > UINT64_MAX - sketch.count_) {
      return std::nullopt;
    }
    sketch.count_ += bin.count;
  }
  // The extremes are in the first and in the last bin, whose numbers are valid with them.
  if (BinOf(min_ns) != bins.front().number || BinOf(max_ns) != bins.back().number ||
      min_ns > max_ns) {
    return std::nullopt;
  }
  sketch.sum_ns_ = sum_ns;
  sketch.min_ns_ = min_ns;
  sketch.max_ns_ = max_ns;
  sketch.bins_ = std::move(bins);
  return sketch;
}

// Most values fall into the bin of the value before, so that bin is tried first.
void DurationSketch::AddTo(uint16_t bin, uint64_t count) {
  if (latest_ < bins_.size() && bins_[latest_].number == bin) {
    bins_[latest_].count += count;
    return;
  }
  // A sorted vector: real sketches have a few dozen bins, and iterating in order gives quantiles.
  const auto at = std::lower_bound(bins_.begin(), bins_.end(), bin,
                                   [](const Bin& b, uint16_t number) { return b.number < number; });
  latest_ = static_cast<size_t>(at - bins_.begin());
  if (at != bins_.end() && at->number == bin) {
    at->count += count;
  } else {
    bins_.insert(at, {bin, count});
  }
}

void DurationSketch::Add(uint64_t duration_ns) {
  ++count_;
  sum_ns_ = Plus(sum_ns_, duration_ns);
  min_ns_ = std::min(min_ns_, duration_ns);
  max_ns_ = std::max(max_ns_, duration_ns);
  AddTo(BinOf(duration_ns), 1);
}

// Bins are added one by one, as the other sketch may use other bins.
void DurationSketch::Merge(const DurationSketch& other) {
  count_ += other.count_;
  sum_ns_ = Plus(sum_ns_, other.sum_ns_);
  min_ns_ = std::min(min_ns_, other.min_ns_);
  max_ns_ = std::max(max_ns_, other.max_ns_);
  for (const Bin& bin : other.bins_) AddTo(bin.number, bin.count);
}

uint64_t DurationSketch::QuantileNs(double q) const {
  if (count_ == 0) return 0;
  // The nearest-rank definition: a quantile is always a value that occurred, apart from its bin's
  // width.
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_));
  const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  // The maximum is known exactly, the last bin's middle is not.
  if (rank == count_) return max_ns_;
  uint64_t seen = 0;
  for (const Bin& bin : bins_) {
    seen += bin.count;
    if (seen >= rank) return std::clamp(ValueOf(bin.number), min_ns_, max_ns_);
  }
  return max_ns_;
}

}  // namespace neurontrace
