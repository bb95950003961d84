// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/capture_clocks.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {

const InstanceClock* CaptureClocks::Find(const WorkerIdentity& worker) const {
  // The order in which CaptureClocks promises its instances.
  const auto key = [](const auto& of) { return std::tie(of.instance_id, of.boot_id); };
  const auto found =
      std::lower_bound(instances.begin(), instances.end(), worker,
                       [&](const InstanceClock& a, const auto& b) { return key(a) < key(b); });
  return found != instances.end() && key(*found) == key(worker) ? &*found : nullptr;
}

DeviceSummary SummaryOf(const std::vector<DeviceClock>& devices) {
  DeviceSummary sum;
  for (const DeviceClock& device : devices) {
    // A core without a map has no bound that could enter the maxima.
    if (device.map.parts.empty()) {
      ++sum.unknown;
      continue;
    }
    ++sum.known;
    sum.bound_ns = std::max(sum.bound_ns, device.bound_ns);
    sum.likely_bound_ns = std::max(sum.likely_bound_ns, device.likely_bound_ns);
    sum.executions += device.executions;
    sum.sync_points += device.sync_points;
    // The first part is not a restart.
    sum.restarts += device.map.parts.size() - 1;
  }
  return sum;
}

}  // namespace neurontrace
