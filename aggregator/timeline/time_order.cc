// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/time_order.h"

#include <algorithm>
#include <array>
#include <bit>

namespace neurontrace {
namespace {

constexpr int kDigitBits = 8;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr size_t kRadixMin = 256;  // fewer: a comparison sort costs less than the counting

bool StartsBefore(const TimelineRecord* a, const TimelineRecord* b) {
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns;
  return a->end_ns > b->end_ns;
}

}  // namespace

void TimeOrder::SortByStart(uint64_t difference_max) {
  const int bits = 64 - std::countl_zero(difference_max);
  spare_.resize(items_.size());
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    std::array<uint32_t, kDigits> begin{};
    for (const Item& item : items_) ++begin[(item.key >> shift) & (kDigits - 1)];
    uint32_t sum = 0;
    for (uint32_t& count : begin) {
      const uint32_t next = sum + count;
      count = sum;
      sum = next;
    }
    for (const Item& item : items_) spare_[begin[(item.key >> shift) & (kDigits - 1)]++] = item;
    items_.swap(spare_);
  }
}

void TimeOrder::Sort(std::vector<TimelineRecord*>& records) {
  if (std::is_sorted(records.begin(), records.end(), StartsBefore)) return;
  if (records.size() < kRadixMin) {
    std::stable_sort(records.begin(), records.end(), StartsBefore);
    return;
  }
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const TimelineRecord* record : records) {
    first = std::min(first, record->start_ns);
    last = std::max(last, record->start_ns);
  }
  items_.clear();
  for (TimelineRecord* record : records) items_.push_back({record->start_ns - first, record});
  SortByStart(last - first);
  for (size_t i = 0; i < items_.size();) {
    size_t end = i + 1;
    while (end < items_.size() && items_[end].key == items_[i].key) ++end;
    if (end - i > 1) {
      std::stable_sort(items_.begin() + i, items_.begin() + end, [](const Item& a, const Item& b) {
        return a.record->end_ns > b.record->end_ns;
      });
    }
    i = end;
  }
  for (size_t i = 0; i < items_.size(); ++i) records[i] = items_[i].record;
}

}  // namespace neurontrace
