// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_maps.h"

#include <algorithm>

namespace neurontrace {

// Sequences decide first. Execution numbers decide where a late record or a gap between two parts
// leaves the sequence unclear, and only if they ascend across the restart.
const DeviceMapPart* DeviceMap::For(const DevicePlace& place) const {
  if (parts.size() <= 1) return parts.empty() ? nullptr : &parts.front();
  if (!place.sequence) return nullptr;
  const auto after = std::upper_bound(
      parts.begin(), parts.end(), *place.sequence,
      [](uint64_t sequence, const DeviceMapPart& part) { return sequence < part.first_sequence; });
  if (after == parts.begin()) return &parts.front();
  const auto begun = after - 1;
  // Execution numbers that restarted in between tell nothing.
  const auto ascend = [](const DeviceMapPart& a, const DeviceMapPart& b) {
    return a.last_exec_id < b.first_exec_id;
  };
  if (begun != parts.begin() && place.exec_id && ascend(*(begun - 1), *begun) &&
      *place.exec_id <= (begun - 1)->last_exec_id) {
    return &*(begun - 1);  // recorded late
  }
  if (after == parts.end() || *place.sequence <= begun->last_sequence) return &*begun;
  if (!place.exec_id || !ascend(*begun, *after)) return nullptr;
  if (*place.exec_id <= begun->last_exec_id) return &*begun;
  return *place.exec_id >= after->first_exec_id ? &*after : nullptr;
}

// Only the machine and its boot matter: all workers of one host share its clocks.
ClockMaps::Key ClockMaps::KeyOf(const WorkerIdentity& host, ClockDomain domain) {
  return {host.instance_id, host.boot_id, domain};
}

void ClockMaps::Set(const WorkerIdentity& host, ClockDomain domain, ClockMap map) {
  maps_.insert_or_assign(KeyOf(host, domain), std::move(map));
}

const ClockMap& ClockMaps::For(const WorkerIdentity& host, ClockDomain domain) const {
  const auto it = maps_.find(KeyOf(host, domain));
  return it == maps_.end() ? identity_ : it->second;
}

// A logical core has only a few physical ones, so a scan is enough.
void ClockMaps::SetDevice(const WorkerIdentity& worker, const DeviceCore& core, DeviceMap map) {
  std::vector<Device>& devices = devices_[{worker, core.nc_idx}];
  for (Device& device : devices) {
    if (device.physical != core.physical) continue;
    device.map = std::move(map);
    return;
  }
  devices.push_back({core.physical, std::move(map)});
}

std::span<const ClockMaps::Device> ClockMaps::Devices(const WorkerIdentity& worker,
                                                      uint32_t nc_idx) const {
  const auto it = devices_.find({worker, nc_idx});
  if (it == devices_.end()) return {};
  return it->second;
}

}  // namespace neurontrace
