// SPDX-License-Identifier: Apache-2.0
#include "lib/base/number_ranges.h"

#include <fmt/format.h>

#include <cassert>

namespace neurontrace {

std::vector<NumberRange> FindRanges(std::span<const int64_t> ascending) {
  std::vector<NumberRange> ranges;
  for (const int64_t number : ascending) {
    assert(ranges.empty() || ranges.back().last < number);
    if (!ranges.empty() && ranges.back().last + 1 == number) {
      ranges.back().last = number;
    } else {
      ranges.push_back({number, number});
    }
  }
  return ranges;
}

std::string FormatRanges(std::span<const NumberRange> ranges, size_t shown_max,
                         std::string_view separator) {
  std::string text;
  size_t shown = 0;
  uint64_t more = 0;
  for (const auto& [first, last] : ranges) {
    if (shown == shown_max) {
      more += static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1;
      continue;
    }
    if (shown++ > 0) text += separator;
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
  }
  return more == 0 ? text : fmt::format("{} and {} more", text, more);
}

}  // namespace neurontrace
