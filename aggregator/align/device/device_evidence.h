// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace neurontrace {

// What a trace contains about the clock of one physical device core against its host's clock.
// Device times are nanoseconds of the core's own counter, which starts anywhere and may restart.
// Host times are all of one clock that the caller chooses. The runtime's own timestamps are of
// CLOCK_REALTIME, which may be stepped; converted to CLOCK_MONOTONIC_RAW first, they spare a fit
// the steps.
//
// A sequence is the place of an event in the ring of its logical core. It orders events where no
// clock can. Plain values.
//
// One execution and the host's calls around it. What makes a device start precedes its start, and
// what waits for its end returns after the end.
struct DeviceExecution {
  uint64_t exec_id = 0;
  uint64_t first_sequence = 0;  // of the device's events of this execution
  uint64_t last_sequence = 0;
  std::optional<uint64_t> host_before_ns = {};
  std::optional<uint64_t> device_start_ns = {};
  std::optional<uint64_t> device_end_ns = {};
  std::optional<uint64_t> host_after_ns = {};
  friend bool operator==(const DeviceExecution&, const DeviceExecution&) = default;
};

// Readings of both clocks that the runtime took one shortly after the other. It does not state
// which came first, nor how far they are apart.
struct DeviceSyncPoint {
  uint64_t exec_id = 0;
  uint64_t sequence = 0;
  uint64_t device_ns = 0;
  uint64_t host_ns = 0;
  // When the host recorded it, which was after both readings.
  std::optional<uint64_t> recorded_ns = {};
  friend bool operator==(const DeviceSyncPoint&, const DeviceSyncPoint&) = default;
};

// All evidence of one physical core. Made by DeviceEvidenceReader from a stream, and by tests from
// simulated devices.
struct DeviceEvidence {
  std::vector<DeviceExecution> executions;   // ascending in first_sequence
  std::vector<DeviceSyncPoint> sync_points;  // ascending in sequence
  friend bool operator==(const DeviceEvidence&, const DeviceEvidence&) = default;
};

}  // namespace neurontrace
