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

// Why evidence of a device's clock was rejected; DescribeFault describes each. Kept as a kind so
// that a clock with thousands of faults has one finding per kind.
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
  // Adds a fault, and reports the largest in magnitude. `amount_ns` is signed and 0 if it is
  // unknown.
  void Add(DeviceFault fault, uint64_t x_ns, double amount_ns = 0);
  // Adds the counts and one finding for each cause. Called once, at the end of the fit.
  void WriteTo(ClockModel& model) const;

 private:
  // The range of the counter that the rejected evidence spans.
  struct Entry {
    uint64_t count = 0;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    double most_ns = 0;
  };
  std::map<DeviceFault, Entry> entries_;
};

// The evidence of one run of a counter, from its start until it restarts. One segment of the model
// is fitted to it.
struct DevicePart {
  SegmentCause cause = SegmentCause::kBegin;
  // `x_begin_ns` and `x_end_ns` are of the certain constraints.
  DeviceSegmentRange range;
  // What is certain, from both sides; in no order and never empty. They come from brackets or,
  // without brackets, from sync points that support each other.
  std::vector<ClockConstraint> hard;
  std::vector<DeviceSyncPoint> sync_points;  // by device_ns, and consistent otherwise
};

// Times are in ns, and `pair` states how a device's counter may wander against its host's clock.
struct DevicePartParameters {
  PairParameters pair;
  // Between the two readings of a sync point, if sync points are the only evidence.
  uint64_t apart_most_ns = 0;
};

// Divides evidence into parts by its place in the ring and its executions. What belongs nowhere is
// added to `faults`. Pure. Parts are in the order of the ring.
std::vector<DevicePart> PartDevice(const DeviceEvidence& evidence,
                                   const DevicePartParameters& parameters, DeviceFaults& faults);

}  // namespace neurontrace
