// SPDX-License-Identifier: Apache-2.0
#include "validate/flow_check.h"

#include <fmt/format.h>

#include "validate/intern_table.h"
#include "validate/perfetto_numbers.h"

namespace neurontrace {

void FlowCheck::Take(const ReadEvent& event, const TrackList::State& track, uint64_t time_ns,
                     bool has_slice) {
  const size_t count = event.flows.size() + event.terminating_flows.size();
  if (!has_slice && count > 0) {
    log_.Add(TraceCheck::kFlowSlice,
             "An event on track {} ('{}') has {}, and begins or ends no slice: no arrow is drawn.",
             track.track.uuid, track.track.name, CountedWords(count, "flow"));
    return;
  }
  using Kind = FlowPoints::Kind;
  if (has_slice) TakeBound(event.legacy, time_ns);
  for (const uint64_t id : event.flows) points_.Take(id, time_ns, Kind::kStep);
  for (const uint64_t id : event.terminating_flows) points_.Take(id, time_ns, Kind::kTerminating);
}

// The flow that a legacy event binds its slice to.
void FlowCheck::TakeBound(const ReadLegacyEvent& event, uint64_t time_ns) {
  using Kind = FlowPoints::Kind;
  namespace legacy = perfetto_read::legacy;
  if (!event.bind_id) return;
  if (event.direction == 0 || event.direction > legacy::kFlowInOut) {
    log_.Add(TraceCheck::kFlowLegacy, "The event has flow {} without a direction: no arrow.",
             *event.bind_id);
    return;
  }
  points_.Take(*event.bind_id, time_ns,
               event.direction == legacy::kFlowOut  ? Kind::kLegacyOut
               : event.direction == legacy::kFlowIn ? Kind::kLegacyIn
                                                    : Kind::kLegacyInOut);
}

void FlowCheck::TakeLegacy(const ReadEvent& event, uint64_t category, uint64_t name,
                           uint64_t time_ns, bool is_in_slice) {
  using Kind = FlowPoints::Kind;
  if (!event.legacy.id) {
    log_.Add(TraceCheck::kFlowLegacy, "An end of a flow has no id: no arrow.");
    return;
  }
  const bool is_end = *event.legacy.phase == 'f';
  // An end belongs to the slice around it only if it says so, else to the next.
  const bool needs_slice = !is_end || event.legacy.binds_enclosing;
  if (needs_slice && !is_in_slice) {
    log_.Add(TraceCheck::kFlowEnclosing, "An end of flow {} is in no slice: no arrow is drawn.",
             *event.legacy.id);
    return;
  }
  points_.Take(HashText(fmt::format("{} {} {}", *event.legacy.id, category, name)), time_ns,
               is_end                       ? Kind::kLegacyIn
               : *event.legacy.phase == 's' ? Kind::kLegacyOut
                                            : Kind::kLegacyInOut);
}

}  // namespace neurontrace
