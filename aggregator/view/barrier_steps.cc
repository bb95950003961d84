// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/barrier_steps.h"

#include <algorithm>
#include <cassert>

namespace neurontrace {

bool BarrierSteps::IsBoundary(const Collective& collective) {
  return collective.kind == CollectiveKind::kHostBarrier && collective.members.size() >= 2 &&
         !collective.is_disjoint();
}

uint64_t BarrierSteps::NumberOf(const Collective& collective) const {
  uint64_t number = 0;
  for (const CollectiveMember& member : collective.members) {
    number = std::max(number, cores_[member.stream].number);
  }
  return number;
}

void BarrierSteps::Advance(const Collective& barrier) {
  assert(IsBoundary(barrier));
  const uint64_t next = NumberOf(barrier) + 1;
  for (const CollectiveMember& member : barrier.members) {
    // The end of an open part is that of its stream, not when the core left.
    cores_[member.stream] = {.number = next,
                             .left = {.barrier = member.is_open ? 0 : barrier.number,
                                      .left_ns = member.end_ns,
                                      .bound = member.bound}};
  }
  ++boundaries_;
}

}  // namespace neurontrace
