// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_maps.h"

namespace neurontrace {

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
