// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/lanes.h"

namespace neurontrace {

// Takes the first lane in which the new span nests. Costs time in proportion to the number of
// lanes, which is 1 for properly nested spans.
std::optional<uint32_t> Lanes::Place(uint64_t start_ns, uint64_t end_ns) {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    auto& lane = lanes_[i];
    Close(lane, start_ns);
    // The innermost open span must enclose the new one: then all do.
    if (lane.size() < kDepthMax && (lane.empty() || lane.back() >= end_ns)) {
      lane.push_back(end_ns);
      return i;
    }
  }
  if (lanes_.size() == kLanesMax) return std::nullopt;
  lanes_.push_back({end_ns});
  return static_cast<uint32_t>(lanes_.size() - 1);
}

}  // namespace neurontrace
