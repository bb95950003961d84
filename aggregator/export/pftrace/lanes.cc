// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/lanes.h"

namespace neurontrace {

std::optional<uint32_t> Lanes::Place(uint64_t start_ns, uint64_t end_ns, uint64_t number) {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    auto& lane = lanes_[i];
    Close(lane, start_ns);
    if (lane.size() < kDepthMax && (lane.empty() || lane.back().end_ns >= end_ns)) {
      lane.push_back({end_ns, number});
      return i;
    }
  }
  if (lanes_.size() == kLanesMax) return std::nullopt;
  lanes_.push_back({{end_ns, number}});
  return static_cast<uint32_t>(lanes_.size() - 1);
}

const Lanes::OpenSpan* Lanes::Innermost(uint64_t at_ns) {
  const OpenSpan* innermost = nullptr;
  for (auto& lane : lanes_) {
    Close(lane, at_ns);
    if (lane.empty()) continue;
    if (innermost == nullptr || lane.back().number > innermost->number) innermost = &lane.back();
  }
  return innermost;
}

}  // namespace neurontrace
