// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device_stamp.h"

#include <algorithm>

namespace neurontrace {
namespace {

// The runtime's stamps are wrong by less, but for sync points that are nonsense; counters of two
// cores rarely agree so well.
constexpr uint64_t kVendorErrorMost = 100'000'000;

uint64_t Distance(uint64_t a, uint64_t b) { return a < b ? b - a : a - b; }

uint64_t AddUpTo(uint64_t a, uint64_t b) { return a > kNoBound - b ? kNoBound : a + b; }

// The runtime's stamp, if the truth is what `estimate` says.
HostStamp KeepVendor(uint64_t vendor_ns, const ClockEstimate& estimate, StampSource source) {
  const uint64_t beside = Distance(vendor_ns, estimate.y_ns);
  return {vendor_ns, AddUpTo(beside, estimate.bound_ns), AddUpTo(beside, estimate.likely_bound_ns),
          source};
}

HostStamp ByModel(const HardwareStamp& stamp, const DeviceClockModel& model) {
  const ClockReading reading =
      ReadDeviceClock(model, {*stamp.counter_ns, stamp.sequence, stamp.exec_id});
  if (reading.is_ambiguous) {
    return KeepVendor(stamp.vendor_ns, reading.estimate, StampSource::kVendorSegments);
  }
  const ClockEstimate& estimate = reading.estimate;
  return {estimate.y_ns, estimate.bound_ns, estimate.likely_bound_ns, StampSource::kModel};
}

// One that does not say its core, of a logical core that has several.
HostStamp ByNearest(const HardwareStamp& stamp, std::span<const DeviceCoreClock> cores) {
  const DeviceCoreClock* near = nullptr;
  for (const DeviceCoreClock& core : cores) {
    if (core.model.clock.segments.empty()) {  // it may be this one's
      return {stamp.vendor_ns, kNoBound, kNoBound, StampSource::kVendorCores};
    }
    const ClockEstimate estimate =
        ReadDeviceClock(core.model, {*stamp.counter_ns, stamp.sequence, stamp.exec_id}).estimate;
    if (Distance(estimate.y_ns, stamp.vendor_ns) > AddUpTo(kVendorErrorMost, estimate.bound_ns)) {
      continue;
    }
    if (near != nullptr) return {stamp.vendor_ns, kNoBound, kNoBound, StampSource::kVendorCores};
    near = &core;
  }
  if (near == nullptr) return {stamp.vendor_ns, kNoBound, kNoBound, StampSource::kVendorCores};
  return ByModel(stamp, near->model);
}

}  // namespace

HostStamp DecideStamp(const HardwareStamp& stamp, std::span<const DeviceCoreClock> cores) {
  if (!stamp.counter_ns) {
    return {stamp.vendor_ns, kNoBound, kNoBound, StampSource::kVendorNoCounter};
  }
  const HostStamp no_model = {stamp.vendor_ns, kNoBound, kNoBound, StampSource::kVendorNoModel};
  if (cores.empty()) return no_model;
  if (!stamp.device_core_idx) {
    if (cores.size() > 1) return ByNearest(stamp, cores);
    return cores.front().model.clock.segments.empty() ? no_model
                                                      : ByModel(stamp, cores.front().model);
  }
  const auto core = std::find_if(cores.begin(), cores.end(), [&](const DeviceCoreClock& candidate) {
    return candidate.device_core_idx == stamp.device_core_idx;
  });
  if (core == cores.end() || core->model.clock.segments.empty()) return no_model;
  return ByModel(stamp, core->model);
}

}  // namespace neurontrace
