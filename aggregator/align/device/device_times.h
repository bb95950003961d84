// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Times of one worker's events that devices stamped, by its host's clock: from what the device
// said, through the device's map. One thread at a time.
class DeviceTimes {
 public:
  // An event is not moved further than this from where the runtime put it: a reader holds as much
  // in memory. Beyond, the runtime's time is kept.
  static constexpr uint64_t kShiftMaxNs = 5'000'000;
  // Parts of maps that are remembered; most streams have one. Beyond, all are looked up again.
  static constexpr size_t kPartsMax = 64;

  struct HostTime {
    uint64_t host_ns = 0;
    uint64_t bound_ns = 0;                  // because of the device's clock
    std::optional<uint64_t> physical = {};  // the core that it is of, as far as that has a number
  };

  // Where an event is from.
  struct Place {
    std::optional<uint64_t> physical;  // its device_core_idx
    DevicePlace ring;
  };

  // Both must live until the next Begin. `clocks` may be nullptr: nothing is mapped.
  void Begin(const ClockMaps* clocks, const StreamIdentity& stream);

  // `runtime_ns`: where the runtime put it. nullopt: nothing is known of the core's clock at this
  // time; or it is too far away; or it may be another core's, or of before or after its counter
  // started again. An event that does not name its core is of the one that it is near to.
  std::optional<HostTime> Map(const Place& place, uint64_t device_ns, uint64_t runtime_ns);

 private:
  struct Part {
    const DeviceMapPart* part;
    ClockMapCursor cursor;
  };
  std::optional<HostTime> MapOn(const ClockMaps::Device& device, const Place& place,
                                uint64_t device_ns, uint64_t runtime_ns);
  ClockMapCursor& CursorOf(const DeviceMapPart& part);

  std::span<const ClockMaps::Device> devices_;  // of the stream's logical core
  std::vector<Part> parts_;                     // those seen
};

}  // namespace neurontrace
