// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace neurontrace {

// Distributes the spans of one row over lanes, so that each lane nests properly. On one Perfetto
// track an end closes the span that began last, so that two spans that overlap without one
// enclosing the other would silently swap their lengths. A span goes into the first lane that it
// fits into. Spans must be placed in the order of their starts, at equal start the longer first.
class Lanes {
 public:
  // Perfetto drops what nests deeper than 512.
  static constexpr size_t kDepthMax = 500;
  // Beyond, the caller shows the span without its length.
  static constexpr size_t kLanesMax = 1'024;

  // Returns the lane for [start, end), which must not be empty, or nullopt if none is left.
  std::optional<uint32_t> Place(uint64_t start_ns, uint64_t end_ns);

 private:
  static void Close(std::vector<uint64_t>& lane, uint64_t until_ns) {
    while (!lane.empty() && lane.back() <= until_ns) lane.pop_back();
  }

  // For each lane, the ends of its open spans, the innermost last.
  std::vector<std::vector<uint64_t>> lanes_;
};

}  // namespace neurontrace
