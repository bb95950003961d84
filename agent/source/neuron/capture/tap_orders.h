// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/worker_info.h"

// What a tap is told for a capture, and what its answers mean there. Pure functions.
namespace neurontrace {

// What a capture wants, understood once for all workers.
struct CapturePlan {
  CaptureId id;
  CaptureSpec spec;
  EventFilter filter;
};

// The START that has `worker` record what `plan` wants. The runtime filters by names, so groups and
// exclusions are resolved against its own list; INVALID_ARGUMENT if nothing on it is wanted. What a
// START cannot say (too many names) is left to the agent's own filter. `fidelity`: the level whose
// classes are left out on top.
absl::StatusOr<TapStartOrder> MakeStartOrder(const CapturePlan& plan, const WorkerFacts& worker,
                                             uint32_t fidelity = 0);

// Of each core's ring in the runtime, as START asks for it.
uint64_t RingEventsPerCore(const CaptureSpec& spec);

// In words for people, what a tap's state means for a capture, and why its trace stopped.
std::string DescribeForCapture(TapState state, int32_t nrt_status, const std::string& detail);
std::string DescribeStop(TapStopReason reason);

// What a tap in this state has in a capture's way; kNone: nothing.
CaptureObstacle ObstacleOf(TapState state);

// A standing capture gives a worker to one of a higher precedence, and takes it back after it.
int Precedence(CaptureMode mode);

}  // namespace neurontrace
