// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/stamp_window.h"

#include <algorithm>

#include "aggregator/align/instance_clock.h"

namespace neurontrace {

void EndWithEvents(const std::vector<StreamRecord>& streams, CaptureClocks& clocks) {
  uint64_t last_ns = 0;
  for (const StreamRecord& stream : streams) {
    if (stream.clock_domain == ClockDomain::kOwn) continue;
    const InstanceClock* const clock = clocks.Find(stream.identity.worker);
    if (clock == nullptr || clock->realtime.is_identity() || stream.last_timestamp_ns == 0) {
      continue;
    }
    last_ns = std::max(last_ns, clock->realtime.ToReference(stream.last_timestamp_ns));
  }
  if (last_ns < clocks.window.begin_ns || last_ns >= clocks.window.end_ns) return;
  clocks.window.end_ns = last_ns;
  for (InstanceClock& clock : clocks.instances) SetBoundsIn(clocks.window, clock);
}

}  // namespace neurontrace
