// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/pair_clock.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence.h"

namespace neurontrace {

// Why evidence of a device's clock was left out.
enum class DeviceFault : uint8_t {
  kImpossible,
  kFitsNothing,
  kOutOfOrder,
  kNowhere,
  kOffCurve,
  kBeyondBracket,
  kAlone,
  kContradiction,
};

// What was left out, counted, and told once for each cause. One thread at a time.
class DeviceFaults {
 public:
  void Add(DeviceFault fault, uint64_t x_ns, double amount_ns = 0);
  void WriteTo(ClockModel& model) const;

 private:
  struct Entry {
    uint64_t count = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    double most_ns = 0;
  };
  std::map<DeviceFault, Entry> entries_;
};

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
