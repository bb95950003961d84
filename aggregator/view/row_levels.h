// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/trace/view_limits.h"

namespace neurontrace {

// Places the spans of one row on levels: each on the first one that is free at its start. Spans
// have to come in the order of their starts, at equal starts the longer first; then the levels of
// spans that enclose each other are those of their nesting. One thread.
class RowLevels {
 public:
  // Returns the level, from 0, and marks it as used up to `end_ns`. Deeper levels than
  // kViewDepthMax share the last.
  uint8_t Place(uint64_t start_ns, uint64_t end_ns) {
    size_t level = 0;
    while (level < ends_ns_.size() && ends_ns_[level] > start_ns) ++level;
    if (level == ends_ns_.size()) {
      if (level == limits::kViewDepthMax) {
        --level;
      } else {
        ends_ns_.push_back(0);
      }
    }
    ends_ns_[level] = std::max(ends_ns_[level], end_ns);
    return static_cast<uint8_t>(level);
  }
  size_t size() const { return ends_ns_.size(); }

 private:
  std::vector<uint64_t> ends_ns_;  // by level
};

}  // namespace neurontrace
