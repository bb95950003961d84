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

  struct OpenSpan {
    uint64_t end_ns = 0;
    uint64_t number = 0;  // the caller's
  };

  // The lane for [start, end), end after start; nullopt where there is none left.
  std::optional<uint32_t> Place(uint64_t start_ns, uint64_t end_ns, uint64_t number);
  // The span begun last of those that are open at this time, which is not before any seen before.
  const OpenSpan* Innermost(uint64_t at_ns);

 private:
  static void Close(std::vector<OpenSpan>& lane, uint64_t until_ns) {
    while (!lane.empty() && lane.back().end_ns <= until_ns) lane.pop_back();
  }

  std::vector<std::vector<OpenSpan>> lanes_;
};

}  // namespace neurontrace
