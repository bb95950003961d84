// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/flow_points.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "lib/validate/limits.h"

namespace neurontrace {
namespace {

// The kind of a flow point is stored in the low bits of its offset, because up to kFlowPointsMax
// points are held. Offsets are far below 2^62.
constexpr uint32_t kKindBits = 2;

}  // namespace

void FlowPoints::Take(uint64_t id, uint64_t time_ns, Kind kind) {
  ++summary_.flow_points;
  if (points_.size() >= validate_limits::kFlowPointsMax) {
    log_.Add(TraceCheck::kLimit,
             "There are more than {} ends of flows; the others are not checked.",
             validate_limits::kFlowPointsMax);
    return;
  }
  const TracePosition& at = log_.position();
  points_.push_back({id, time_ns, at.packet, at.offset << kKindBits | static_cast<uint64_t>(kind)});
}

// A flow ends at its terminating point; a later point with the same id begins another one.
void FlowPoints::Follow(const Point* begin, const Point* end) {
  size_t drawn = 0;  // points since the flow began
  for (const Point* point = begin; point != end; ++point) {
    const auto kind = static_cast<Kind>(point->offset_and_kind & ((1u << kKindBits) - 1));
    // Only a step begins a flow.
    if (drawn == 0 && kind != Kind::kStep) {
      ++summary_.lone_flow_points;
      log_.MoveTo({point->packet, point->offset_and_kind >> kKindBits});
      log_.Add(TraceCheck::kFlow, "Flow {} ends here but has not begun; no arrow is drawn.",
               point->id);
      continue;
    }
    if (drawn > 0) ++summary_.flow_arrows;
    drawn = kind == Kind::kTerminating ? 0 : drawn + 1;
  }
  // No further point continues it.
  if (drawn == 1) ++summary_.lone_flow_points;
}

void FlowPoints::Finish() {
  const auto key = [](const Point& point) {
    return std::tie(point.id, point.time_ns, point.packet, point.offset_and_kind);
  };
  // Points of one time keep the order of the file.
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
