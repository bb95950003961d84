// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "aggregator/align/device_clock.h"

namespace neurontrace {

// A hardware event comes with two stamps: the core's counter, and what the runtime made of it by
// one sync point, with that one's error and that of all the drift since. The counter is put on the
// host's clock anew where it is clear how; elsewhere the runtime's stamp stays, and says so.

struct HardwareStamp {
  uint64_t vendor_ns = 0;  // timestamp_ns, on the same host's clock as the models' y
  std::optional<uint64_t> counter_ns = {};
  std::optional<uint64_t> device_core_idx = {};  // its start's, for a stop
  std::optional<uint64_t> exec_id = {};          // likewise
  uint64_t sequence = 0;
};

struct DeviceCoreClock {
  std::optional<uint64_t> device_core_idx;  // nullopt: the events of its core named none
  DeviceClockModel model;
};

// Where a host stamp of a hardware event is from. Values are in exported files: never change one.
enum class StampSource : uint8_t {
  kModel = 0,            // the counter, by its model
  kVendorNoCounter = 1,  // the others are the runtime's own: there was no counter's stamp
  kVendorNoModel = 2,    // nothing is known of that core's clock
  kVendorCores = 3,      // it may be of either of several cores
  kVendorSegments = 4,   // it may be from before or after its counter started again
};

struct HostStamp {
  uint64_t host_ns = 0;
  uint64_t bound_ns = kNoBound;
  uint64_t likely_bound_ns = kNoBound;
  StampSource source = StampSource::kVendorNoCounter;
  friend bool operator==(const HostStamp&, const HostStamp&) = default;
};

// `cores` are those of the event's logical core.
HostStamp DecideStamp(const HardwareStamp& stamp, std::span<const DeviceCoreClock> cores);

}  // namespace neurontrace
