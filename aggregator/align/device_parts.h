// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/align/device_clock.h"
#include "aggregator/align/device_evidence.h"
#include "aggregator/align/device_faults.h"
#include "aggregator/align/pair_clock.h"

namespace neurontrace {

// The evidence of one run of a counter, from its start to where it starts again.
struct DevicePart {
  SegmentCause cause = SegmentCause::kBegin;
  DeviceSegmentRange range;
  // What cannot be otherwise: from both sides. Not in order.
  std::vector<ClockConstraint> hard;
  std::vector<DeviceSyncPoint> sync_points;  // by device_ns, and in order by all else
};

struct DevicePartParameters {
  PairParameters pair;
  // Of a sync point's readings, where sync points are all there is.
  uint64_t apart_most_ns = 0;
};

// Parts evidence by its place in the ring and its executions. What belongs nowhere goes to
// `faults`.
std::vector<DevicePart> PartDevice(const DeviceEvidence& evidence,
                                   const DevicePartParameters& parameters, DeviceFaults& faults);

}  // namespace neurontrace
