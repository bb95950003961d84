// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "aggregator/align/clock_map.h"
#include "trace/ids.h"

namespace neurontrace {

// Times of one worker's events that devices stamped, by its host's clock: from what the device
// said, through the device's map. One thread at a time.
class DeviceTimes {
 public:
  // An event is not moved further than this from where the runtime put it: a reader holds as much
  // in memory. Beyond, the runtime's time is kept.
  static constexpr uint64_t kShiftMaxNs = 5'000'000;
  // Cores whose maps are remembered; honest workers have a few. Beyond, all are looked up anew.
  static constexpr size_t kCoresMax = 64;

  struct HostTime {
    uint64_t host_ns = 0;
    uint64_t bound_ns = 0;  // because of the device's clock
  };

  // Both must live until the next Begin. `clocks` may be nullptr: nothing is mapped.
  void Begin(const ClockMaps* clocks, const WorkerIdentity& worker);

  // `runtime_ns`: where the runtime put it. nullopt: the core has no map, the map does not know
  // this time, or it is too far away.
  std::optional<HostTime> Map(uint64_t core, uint64_t device_ns, uint64_t runtime_ns);

 private:
  ClockMapCursor* CursorOf(uint64_t core);

  const ClockMaps* clocks_ = nullptr;
  const WorkerIdentity* worker_ = nullptr;
  std::vector<std::pair<uint64_t, std::optional<ClockMapCursor>>> cursors_;  // by core
};

}  // namespace neurontrace
