// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device_map.h"

#include "aggregator/align/clock_lines.h"

namespace neurontrace {

DeviceMap DeviceMapOf(const DeviceClockModel& model) {
  DeviceMap map;
  for (size_t i = 0; i < model.clock.segments.size(); ++i) {
    ClockModel alone;
    alone.segments.push_back(model.clock.segments[i]);
    const DeviceSegmentRange& range = model.ranges[i];
    map.parts.push_back({range.first_sequence, range.last_sequence, range.first_exec_id,
                         range.last_exec_id, MapOf(alone)});
  }
  return map;
}

}  // namespace neurontrace
