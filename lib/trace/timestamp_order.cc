// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/timestamp_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <numeric>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// A digit of 11 bits has 2,048 counters of 4 bytes, which fit the first-level cache.
constexpr int kPositionBits = std::bit_width(limits::kChunkEventsMax - 1);
constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Makes one stable pass over the digit that starts at bit `shift`.
void SortByDigit(const std::vector<uint64_t>& from, std::vector<uint64_t>& to, int shift) {
  assert(from.size() == to.size());
  std::array<uint32_t, kDigits> starts{};
  for (const uint64_t key : from) ++starts[(key >> shift) & (kDigits - 1)];
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), 0u);
  for (const uint64_t key : from) to[starts[(key >> shift) & (kDigits - 1)]++] = key;
}

}  // namespace

std::span<const uint32_t> TimestampOrder::Sort(std::span<const uint64_t> timestamps) {
  assert(timestamps.size() <= limits::kChunkEventsMax);  // a position has kPositionBits
  if (std::is_sorted(timestamps.begin(), timestamps.end())) return {};
  const auto [min, max] = std::minmax_element(timestamps.begin(), timestamps.end());
  const uint64_t base = *min;
  const int span_bits = std::bit_width(*max - base);
  order_.resize(timestamps.size());
  // More than half a month within one chunk; time and position do not fit into one key.
  if (span_bits + kPositionBits > 64) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return timestamps[a] < timestamps[b]; });
    return order_;
  }
  // Keys have the time since the first event in the high bits and the position in the low ones. A
  // radix sort over the time alone is stable and costs three or four passes for a usual chunk.
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
