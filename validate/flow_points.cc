// SPDX-License-Identifier: Apache-2.0
#include "validate/flow_points.h"

#include "validate/limits.h"

namespace neurontrace {

void FlowPoints::Take(uint64_t id, bool is_terminating) {
  ++summary_.flow_points;
  const auto found = open_.find(id);
  if (found != open_.end()) {
    ++summary_.flow_arrows;
    found->second = true;
    if (is_terminating) open_.erase(found);
    return;
  }
  if (is_terminating) {
    ++summary_.lone_flow_points;
    log_.Add(TraceCheck::kFlow, "Flow {} ends here, and has not begun: no arrow is drawn.", id);
  } else if (open_.size() < validate_limits::kFlowsMax) {
    open_.emplace(id, false);
  } else {
    log_.Add(TraceCheck::kLimit, "More than {} flows are open: further ones are not followed.",
             validate_limits::kFlowsMax);
  }
}

void FlowPoints::Finish() {
  for (const auto& [id, has_arrow] : open_) {
    if (!has_arrow) ++summary_.lone_flow_points;
  }
}

}  // namespace neurontrace
