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

// The commands to a tap for a capture, and what its answers mean for the capture. The protocol is
// that of tap/agent_protocol.h. Pure functions.
namespace neurontrace {

// What a capture selects, parsed once for all workers.
struct CapturePlan {
  CaptureId id;
  CaptureSpec spec;
  EventFilter filter;
};

// Returns the START that has `worker` record what `plan` selects at level `fidelity`. The runtime
// filters by names only, so groups and exclusions are resolved against the runtime's own list.
// Fails with INVALID_ARGUMENT if nothing on that list is selected. What a START cannot express (too
// many names) is left to the agent's own filter.
absl::StatusOr<TapStartOrder> MakeStartOrder(const CapturePlan& plan, const WorkerFacts& worker,
                                             uint32_t fidelity = 0);

// Returns the size of each core's ring in the runtime, in events, as START requests it.
uint64_t RingEventsPerCore(const CaptureSpec& spec);

// Describe for people what a tap's state means for a capture, and why its trace stopped.
std::string DescribeForCapture(TapState state, int32_t nrt_status, const std::string& detail);
std::string DescribeStop(TapStopReason reason);

// Returns what a tap in this state prevents a capture from; kNone if nothing.
CaptureObstacle ObstacleOf(TapState state);

// Returns the precedence of a mode: a standing capture is suspended in a worker for one of a higher
// precedence.
int Precedence(CaptureMode mode);

}  // namespace neurontrace
