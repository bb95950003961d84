// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/told_steps.h"

#include <algorithm>
#include <bit>

namespace neurontrace {

ToldSteps::ToldSteps(std::span<const ClockEvent> events) {
  for (const ClockEvent& event : events) {
    if (event.kind == ClockEventKind::kRealtimeStep) steps_.push_back(&event);
  }
  leaves_ = std::bit_ceil(std::max<size_t>(steps_.size(), 1));
  latest_.resize(2 * leaves_);
  for (size_t i = 0; i < steps_.size(); ++i) latest_[leaves_ + i] = steps_[i]->raw_end_ns;
  for (size_t n = leaves_ - 1; n > 0; --n) {
    latest_[n] = std::max(latest_[2 * n], latest_[2 * n + 1]);
  }
}

std::optional<ToldSteps::Ends> ToldSteps::Between(uint64_t begin_ns, uint64_t end_ns) const {
  const auto begun = std::partition_point(
      steps_.begin(), steps_.end(),
      [end_ns](const ClockEvent* step) { return step->raw_begin_ns < end_ns; });
  if (begun == steps_.begin()) return std::nullopt;
  const auto is_in = [&](size_t node) { return latest_[node] > begin_ns; };
  // The last: from the last that has begun to the left, and up while there is none.
  size_t node = leaves_ + static_cast<size_t>(begun - steps_.begin()) - 1;
  while (!is_in(node)) {
    while (node > 1 && node % 2 == 0) node /= 2;  // nothing of the same parent is to its left
    if (node == 1) return std::nullopt;
    --node;
  }
  while (node < leaves_) node = is_in(2 * node + 1) ? 2 * node + 1 : 2 * node;
  const ClockEvent* const last = steps_[node - leaves_];
  // There is one, so that the first of all is no later.
  node = 1;
  while (node < leaves_) node = is_in(2 * node) ? 2 * node : 2 * node + 1;
  return Ends{steps_[node - leaves_], last};
}

}  // namespace neurontrace
