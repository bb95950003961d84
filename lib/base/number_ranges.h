// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// The numbers from `first` to `last`, both included; first <= last.
struct NumberRange {
  int64_t first = 0;
  int64_t last = 0;
  bool operator==(const NumberRange&) const = default;
};

// Returns the ranges of ascending, distinct numbers, as few as possible.
std::vector<NumberRange> FindRanges(std::span<const int64_t> ascending);

// Returns the ranges as text, "0-3, 8, 12-15 and 20 more". At most `shown_max` ranges are in it;
// the numbers of the others are only counted.
std::string FormatRanges(std::span<const NumberRange> ranges, size_t shown_max = SIZE_MAX,
                         std::string_view separator = ", ");

}  // namespace neurontrace
