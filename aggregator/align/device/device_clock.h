// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/core/clock_reading.h"

namespace neurontrace {

// Which of a sync point's two readings came first. Stored: never change a value.
enum class SyncOrder : uint8_t {
  kUnknown = 0,      // to be learned; in a model: could not be learned
  kHostAfter = 1,    // the host's reading is late, never early
  kHostBefore = 2,   // the host's reading is early, never late
  kEitherFirst = 3,  // the host's reading is early as often as late
};

// Where the evidence of a segment lies, ends included. The evidence is that of the events that were
// used; others may lie beyond it.
struct DeviceSegmentRange {
  uint64_t first_sequence = 0;
  uint64_t last_sequence = 0;
  uint64_t first_exec_id = 0;
  uint64_t last_exec_id = 0;
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  friend bool operator==(const DeviceSegmentRange&, const DeviceSegmentRange&) = default;
};

// How a device core's counter (x, ns) becomes its host's clock (y, ns), piece by piece. A counter
// can restart, so the same x can be in several segments. An event's place in the ring and its
// execution decide between them, so this model is only read by ReadDeviceClock. `ranges` are in the
// same order as the segments and ascend in sequence.
struct DeviceClockModel {
  ClockModel clock;
  std::vector<DeviceSegmentRange> ranges;  // one per segment
  SyncOrder sync_order = SyncOrder::kUnknown;
  friend bool operator==(const DeviceClockModel&, const DeviceClockModel&) = default;
};

// Whether an execution belongs to a segment or to the next one, by its number. Numbers that
// restarted in between tell nothing.
enum class DeviceSegmentSide : uint8_t { kUnknown, kBefore, kAfter };
// Returns kUnknown if the numbers of the two do not ascend, and for a number between them.
DeviceSegmentSide SideOf(const DeviceSegmentRange& before, const DeviceSegmentRange& after,
                         uint64_t exec_id);

// A timestamp of the device's counter with its place. `x_ns` is the counter, `sequence` the place
// in the ring of the logical core.
struct DeviceTime {
  uint64_t x_ns = 0;
  uint64_t sequence = 0;
  std::optional<uint64_t> exec_id = {};
};

// Returns the estimate for a timestamp. If it may belong to either of two segments and fits both,
// the bounds include both. Without a segment y is x, without a bound. Pure. Used to judge fits;
// events go through DeviceMapOf.
ClockReading ReadDeviceClock(const DeviceClockModel& model, const DeviceTime& time);

// Returns a map part for each segment, which is what events go through, at a few nanoseconds each.
// Events that the model cannot attribute to one segment are not mapped. Bounds of a part hold for
// its own segment only: a part does not know of its neighbours.
DeviceMap DeviceMapOf(const DeviceClockModel& model);

}  // namespace neurontrace
