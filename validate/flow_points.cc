// SPDX-License-Identifier: Apache-2.0
#include "validate/flow_points.h"

#include <algorithm>
#include <tuple>

#include "validate/limits.h"

namespace neurontrace {

void FlowPoints::Take(uint64_t id, uint64_t time_ns, bool is_terminating) {
  ++summary_.flow_points;
  if (points_.size() >= validate_limits::kFlowPointsMax) {
    log_.Add(TraceCheck::kLimit, "More than {} ends of flows: further ones are not followed.",
             validate_limits::kFlowPointsMax);
    return;
  }
  const TracePosition& at = log_.position();
  points_.push_back({id, time_ns, at.packet, at.offset << 1 | (is_terminating ? 1u : 0u)});
}

void FlowPoints::Follow(const Point* begin, const Point* end) {
  size_t drawn = 0;  // points since the flow began
  for (const Point* point = begin; point != end; ++point) {
    const bool is_terminating = (point->offset_and_end & 1) != 0;
    if (drawn > 0) ++summary_.flow_arrows;
    if (drawn == 0 && is_terminating) {
      ++summary_.lone_flow_points;
      log_.MoveTo({point->packet, point->offset_and_end >> 1});
      log_.Add(TraceCheck::kFlow, "Flow {} ends here, and has not begun: no arrow is drawn.",
               point->id);
    } else {
      drawn = is_terminating ? 0 : drawn + 1;
    }
  }
  if (drawn == 1) ++summary_.lone_flow_points;  // nothing has it further on
}

void FlowPoints::Finish() {
  const auto key = [](const Point& point) {
    return std::tie(point.id, point.time_ns, point.packet, point.offset_and_end);
  };
  std::sort(points_.begin(), points_.end(),
            [&](const Point& a, const Point& b) { return key(a) < key(b); });
  const Point* const end = points_.data() + points_.size();
  for (const Point* begin = points_.data(); begin != end;) {
    const Point* const next =
        std::find_if(begin, end, [&](const Point& point) { return point.id != begin->id; });
    Follow(begin, next);
    begin = next;
  }
}

}  // namespace neurontrace
