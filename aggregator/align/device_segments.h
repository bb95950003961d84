// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/clock_model.h"
#include "aggregator/align/pair_clock.h"

namespace neurontrace {

// Something that ties a counter to a clock at about one time from both sides.
struct ClockAnchor {
  ClockConstraint first;
  ClockConstraint second;  // not before the first in x
  uint64_t sequence = 0;
};

struct AnchorSegments {
  struct Segment {
    SegmentCause cause = SegmentCause::kBegin;
    std::vector<size_t> anchors;  // ascending
  };
  std::vector<Segment> segments;
  std::vector<size_t> rejected;  // anchors that fit none, ascending
};

// Parts anchors, which are in the order of the ring, where the counter started again or stepped:
// one that does not fit what came before is held; once three in a row fit each other, they are a
// new segment; if those before go on instead, it is rejected.
AnchorSegments PartAnchors(std::span<const ClockAnchor> anchors, const PairParameters& parameters);

// Which of `values` are not in the longest part of them that strictly ascends. One bad value costs
// one, however bad it is.
std::vector<bool> OutOfOrder(std::span<const uint64_t> values);

}  // namespace neurontrace
