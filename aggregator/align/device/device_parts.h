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

// Why evidence of a device's clock was rejected; FaultWords describes each.
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

// Counts rejected evidence, and reports each cause once. One thread at a time.
class DeviceFaults {
 public:
  void Add(DeviceFault fault, uint64_t x_ns, double amount_ns = 0);
  // Adds the counts and one finding for each cause.
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

// The evidence of one run of a counter, from its start until it restarts.
struct DevicePart {
  SegmentCause cause = SegmentCause::kBegin;
  DeviceSegmentRange range;
  // What is certain, from both sides; in no order.
  std::vector<ClockConstraint> hard;
  std::vector<DeviceSyncPoint> sync_points;  // by device_ns, and consistent otherwise
};

struct DevicePartParameters {
  PairParameters pair;
  // Between the two readings of a sync point, if sync points are the only evidence.
  uint64_t apart_most_ns = 0;
};

// Divides evidence into parts by its place in the ring and its executions. What belongs nowhere is
// added to `faults`. Pure.
std::vector<DevicePart> PartDevice(const DeviceEvidence& evidence,
                                   const DevicePartParameters& parameters, DeviceFaults& faults);

}  // namespace neurontrace
