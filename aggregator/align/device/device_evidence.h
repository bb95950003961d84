// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace neurontrace {

// What a trace says of the clock of one physical device core, against its host's clock. Device
// times are nanoseconds of the core's own counter, which starts anywhere and may start again. Host
// times are of one clock, whichever the caller chose: the runtime's own stamps are of
// CLOCK_REALTIME, which may be stepped; where those can be brought to CLOCK_MONOTONIC_RAW first, a
// fit is spared the steps.
//
// A sequence is the place of an event in the ring of its (logical) core. It tells before from after
// where no clock can.

// One execution, and the host's calls around it: what causes a device to start comes before it
// starts, and what waits for its end returns after it.
struct DeviceExecution {
  uint64_t exec_id = 0;
  uint64_t first_sequence = 0;  // of the device's events of it
  uint64_t last_sequence = 0;
  std::optional<uint64_t> host_before_ns = {};
  std::optional<uint64_t> device_start_ns = {};
  std::optional<uint64_t> device_end_ns = {};
  std::optional<uint64_t> host_after_ns = {};
  friend bool operator==(const DeviceExecution&, const DeviceExecution&) = default;
};

// Both clocks, read by the runtime one soon after the other: which of them first it does not say,
// nor how soon.
struct DeviceSyncPoint {
  uint64_t exec_id = 0;
  uint64_t sequence = 0;
  uint64_t device_ns = 0;
  uint64_t host_ns = 0;
  // When the host wrote it down, which was after both readings.
  std::optional<uint64_t> recorded_ns = {};
  friend bool operator==(const DeviceSyncPoint&, const DeviceSyncPoint&) = default;
};

struct DeviceEvidence {
  std::vector<DeviceExecution> executions;   // ascending in first_sequence
  std::vector<DeviceSyncPoint> sync_points;  // ascending in sequence
  friend bool operator==(const DeviceEvidence&, const DeviceEvidence&) = default;
};

}  // namespace neurontrace
