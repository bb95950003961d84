// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// Sorts by the member `key` (uint64_t) and keeps the order of equal keys: a radix sort from the
// least significant digit (Knuth, The Art of Computer Programming, volume 3, section 5.2.5). It
// takes time linear in the items and in the digits in which keys differ, and returns at once if
// they are sorted. `spare` is scratch memory that callers keep from call to call. At most 2^32 - 1
// items. Keeps no state; any thread.
template <typename Item>
void RadixSortByKey(std::vector<Item>& items, std::vector<Item>& spare) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  // For fewer items a comparison sort costs less than the counting.
  constexpr size_t kItemsMin = 256;
  const auto by_key = [](const Item& a, const Item& b) { return a.key < b.key; };
  if (std::is_sorted(items.begin(), items.end(), by_key)) return;
  if (items.size() < kItemsMin) {
    std::stable_sort(items.begin(), items.end(), by_key);
    return;
  }
  const auto [first, last] = std::minmax_element(items.begin(), items.end(), by_key);
  // Keys are times of one slice: relative to the smallest, few digits are left to sort by.
  const uint64_t base = first->key;
  const int bits = 64 - std::countl_zero(last->key - base);
  spare.resize(items.size());
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    std::array<uint32_t, kDigits> begin{};
    for (const Item& item : items) ++begin[((item.key - base) >> shift) & (kDigits - 1)];
    uint32_t sum = 0;
    for (uint32_t& count : begin) {
      const uint32_t next = sum + count;
      count = sum;
      sum = next;
    }
    for (const Item& item : items) {
      spare[begin[((item.key - base) >> shift) & (kDigits - 1)]++] = item;
    }
    items.swap(spare);
  }
}

}  // namespace neurontrace
