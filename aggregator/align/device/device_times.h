// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_maps.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Converts device timestamps of one worker's events to its host's clock through the device's map.
// One thread at a time. Used by RecordExtractor (aggregator/timeline/record_extractor.h).
class DeviceTimes {
 public:
  // An event is moved at most this far from where the runtime put it, because a reader has to keep
  // that much in memory to restore the order. Beyond it the runtime's time is kept.
  static constexpr uint64_t kShiftMaxNs = 5'000'000;
  // Map parts that are remembered; most streams use one. Beyond this all are looked up again. A
  // limit because a hostile trace could have a part for every event.
  static constexpr size_t kPartsMax = 64;

  // A converted time.
  struct HostTime {
    uint64_t host_ns = 0;
    uint64_t bound_ns = 0;                  // of the device's clock alone
    std::optional<uint64_t> physical = {};  // its core, if that has a number
  };

  // Where an event comes from.
  struct Place {
    std::optional<uint64_t> physical;  // its device_core_idx
    DevicePlace ring;
  };

  // Starts with a stream. Both must exist until the next Begin. `clocks` may be nullptr: nothing is
  // mapped. Forgets the parts of the stream before.
  void Begin(const ClockMaps* clocks, const StreamIdentity& stream);

  // Converts `device_ns`; `runtime_ns` is where the runtime put the event. Returns nullopt if the
  // core's clock is unknown at this time, if the result is too far away, or if it is unclear which
  // core or which run of the counter the event belongs to. An event that names no core is
  // attributed to the one whose time is near.
  std::optional<HostTime> Map(const Place& place, uint64_t device_ns, uint64_t runtime_ns);

 private:
  struct Part {
    const DeviceMapPart* part;
    ClockMapCursor cursor;
  };
  // Returns the time on one core's clock, under the same conditions as Map.
  std::optional<HostTime> MapOn(const ClockMaps::Device& device, const Place& place,
                                uint64_t device_ns, uint64_t runtime_ns);
  ClockMapCursor& CursorOf(const DeviceMapPart& part);

  // Owned by the ClockMaps of Begin.
  std::span<const ClockMaps::Device> devices_;  // of the stream's logical core
  std::vector<Part> parts_;                     // used so far
};

}  // namespace neurontrace
