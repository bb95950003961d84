// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace neurontrace {

// Spreads the spans of one row over lanes, each of which nests properly: on one Perfetto track an
// end closes the span begun last, so that two spans that overlap without one enclosing the other
// would silently swap their lengths. A span goes into the first lane that it fits. Spans come in
// the order of their start, at equal start the longer first.
class Lanes {
 public:
  // Perfetto drops what nests deeper than 512.
  static constexpr size_t kDepthMax = 500;
  // Beyond, the caller shows the span without its length.
  static constexpr size_t kLanesMax = 1'024;

  // The lane for [start, end), end after start; nullopt where there is none left.
  std::optional<uint32_t> Place(uint64_t start_ns, uint64_t end_ns);

 private:
  static void Close(std::vector<uint64_t>& lane, uint64_t until_ns) {
    while (!lane.empty() && lane.back() <= until_ns) lane.pop_back();
  }

  std::vector<std::vector<uint64_t>> lanes_;  // the ends of their open spans
};

}  // namespace neurontrace
