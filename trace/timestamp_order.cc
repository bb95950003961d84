// SPDX-License-Identifier: Apache-2.0
#include "trace/timestamp_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr int kPositionBits = std::bit_width(limits::kChunkEventsMax - 1);
constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// One stable pass over the digit that starts at `shift`.
void SortByDigit(const std::vector<uint64_t>& from, std::vector<uint64_t>& to, int shift) {
  std::array<uint32_t, kDigits> starts{};
  for (const uint64_t key : from) ++starts[(key >> shift) & (kDigits - 1)];
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), 0u);
  for (const uint64_t key : from) to[starts[(key >> shift) & (kDigits - 1)]++] = key;
}

}  // namespace

std::span<const uint32_t> TimestampOrder::Sort(std::span<const uint64_t> timestamps) {
  if (std::is_sorted(timestamps.begin(), timestamps.end())) return {};
  const auto [min, max] = std::minmax_element(timestamps.begin(), timestamps.end());
  const uint64_t base = *min;
  const int span_bits = std::bit_width(*max - base);
  order_.resize(timestamps.size());
  if (span_bits + kPositionBits > 64) {  // over half a month inside one chunk
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return timestamps[a] < timestamps[b]; });
    return order_;
  }
  // Time since the first in the high bits, position in the low ones: a radix sort over the time
  // alone is stable and costs three or four passes for a usual chunk.
  keys_.resize(timestamps.size());
  spare_.resize(timestamps.size());
  for (size_t i = 0; i < timestamps.size(); ++i) {
    keys_[i] = ((timestamps[i] - base) << kPositionBits) | i;
  }
  for (int shift = kPositionBits; shift < kPositionBits + span_bits; shift += kDigitBits) {
    SortByDigit(keys_, spare_, shift);
    keys_.swap(spare_);
  }
  constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;
  std::transform(keys_.begin(), keys_.end(), order_.begin(),
                 [](uint64_t key) { return static_cast<uint32_t>(key & kPositionMask); });
  return order_;
}

}  // namespace neurontrace
