// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/clock_reading.h"

namespace neurontrace {

// Which of a sync point's two readings came first. Values are in stores: never change one.
enum class SyncOrder : uint8_t {
  kUnknown = 0,      // to be learned; of a model: could not be
  kHostAfter = 1,    // the host's reading is late, never early
  kHostBefore = 2,   // it is early, never late
  kEitherFirst = 3,  // it is as often early as late
};

// The evidence that a segment is made of lies between these, ends included.
struct DeviceSegmentRange {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t first_exec_id = 0;
  uint64_t last_exec_id = 0;
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  friend bool operator==(const DeviceSegmentRange&, const DeviceSegmentRange&) = default;
};

// How a device core's counter (x) becomes its host's clock (y), piece by piece. As a counter may
// start again, the same x may lie in several segments: where an event belongs is told by its place
// in the ring and its execution, so this model is read by ReadDeviceClock alone.
struct DeviceClockModel {
  ClockModel clock;
  std::vector<DeviceSegmentRange> ranges;  // one a segment
  SyncOrder sync_order = SyncOrder::kUnknown;
  friend bool operator==(const DeviceClockModel&, const DeviceClockModel&) = default;
};

// Whether an execution is of a segment or of the next, by its number. Numbers that start again tell
// nothing.
enum class DeviceSegmentSide : uint8_t { kUnknown, kBefore, kAfter };
DeviceSegmentSide SideOf(const DeviceSegmentRange& before, const DeviceSegmentRange& after,
                         uint64_t exec_id);

// A stamp of the device's counter, and where it stood.
struct DeviceTime {
  uint64_t x_ns = 0;
  uint64_t sequence = 0;
  std::optional<uint64_t> exec_id = {};
};

// A time that may lie in either of two segments, and could in both, has the bounds of both. A model
// without a segment says that y is x, without a bound.
ClockReading ReadDeviceClock(const DeviceClockModel& model, const DeviceTime& time);

// A part for each segment of the model, which is what events go through: at a few nanoseconds
// each, and without a word where the model leaves open to which of two segments they belong.
DeviceMap DeviceMapOf(const DeviceClockModel& model);

}  // namespace neurontrace
