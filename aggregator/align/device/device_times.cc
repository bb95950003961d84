// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_times.h"

#include "aggregator/align/core/clock_maps.h"

namespace neurontrace {

void DeviceTimes::Begin(const ClockMaps* clocks, const StreamIdentity& stream) {
  devices_ = {};
  if (clocks != nullptr) devices_ = clocks->Devices(stream.worker, stream.nc_idx);
  parts_.clear();
}

// The reference is valid until the next call. A scan is fastest: a stream uses one or two parts.
ClockMapCursor& DeviceTimes::CursorOf(const DeviceMapPart& part) {
  for (Part& known : parts_) {
    if (known.part == &part) return known.cursor;
  }
  if (parts_.size() >= kPartsMax) parts_.clear();
  return parts_.emplace_back(&part, ClockMapCursor(part.map)).cursor;
}

// A time without a bound is not used: it is outside of what the model covers.
std::optional<DeviceTimes::HostTime> DeviceTimes::MapOn(const ClockMaps::Device& device,
                                                        const Place& place, uint64_t device_ns,
                                                        uint64_t runtime_ns) {
  const DeviceMapPart* part = device.map.For(place.ring);
  if (part == nullptr) return std::nullopt;
  ClockMapCursor& cursor = CursorOf(*part);
  const std::optional<uint64_t> bound_ns = cursor.ErrorBoundNs(device_ns);
  if (!bound_ns) return std::nullopt;
  const uint64_t host_ns = cursor.ToReference(device_ns);
  const uint64_t shift_ns = host_ns > runtime_ns ? host_ns - runtime_ns : runtime_ns - host_ns;
  if (shift_ns > kShiftMaxNs) return std::nullopt;
  return HostTime{host_ns, *bound_ns, device.physical};
}

std::optional<DeviceTimes::HostTime> DeviceTimes::Map(const Place& place, uint64_t device_ns,
                                                      uint64_t runtime_ns) {
  // The core is clear: it is named, or there is only one.
  if (place.physical || devices_.size() == 1) {
    for (const ClockMaps::Device& device : devices_) {
      if (place.physical && device.physical != place.physical) continue;
      return MapOn(device, place, device_ns, runtime_ns);
    }
    return std::nullopt;
  }
  // The runtime's times agree with the right core's counter far better than two cores do with each
  // other.
  std::optional<HostTime> near;
  for (const ClockMaps::Device& device : devices_) {
    if (device.map.parts.empty()) return std::nullopt;  // the event may be this one's
    const std::optional<HostTime> time = MapOn(device, place, device_ns, runtime_ns);
    if (time && near) return std::nullopt;
    if (time) near = time;
  }
  return near;
}

}  // namespace neurontrace
