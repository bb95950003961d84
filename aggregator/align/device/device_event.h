// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event.h"

namespace neurontrace {

// What an event of the runtime's ring contributes to the clock of a core. Each groups the names
// that versions of the runtime use for the same event.
enum class DeviceEventType : uint8_t {
  kOther,       // nothing
  kRunning,     // the device runs an execution
  kDevice,      // any other event with a timestamp of the device's counter
  kCollective,  // the same: the device takes part in a collective
  kSyncPoint,   // readings of both clocks
  // Host events around an execution, in this order:
  kPrepare,  // before submission
  kCore,     // submission and wait
  kWait,
  kFinish,   // after the end is known
  kBarrier,  // a barrier with the other hosts
};

// Recognises the names of several versions of the runtime. Returns kOther for a name that is not
// known.
DeviceEventType DeviceEventTypeOf(std::string_view event_type);

// The fields of one event that clocks need.
struct DeviceEvent {
  DeviceEventType type = DeviceEventType::kOther;
  Phase phase = Phase::kOther;
  uint64_t sequence = 0;      // nc_local_id: its place in the ring
  uint64_t tracking_id = 0;   // shared by a start and its stop
  uint64_t timestamp_ns = 0;  // host's clock; for a device's event as the runtime computed it
  std::optional<uint64_t> exec_id = {};
  // What the device's counter showed, in ns.
  std::optional<uint64_t> nc_timestamp_ns = {};
  // Of a sync point: what the host's clock showed, in ns.
  std::optional<uint64_t> cpu_timestamp_ns = {};
  // The physical core, if the runtime names it.
  std::optional<uint64_t> device_core_idx = {};
  // Of a collective: its number within the execution. Of a barrier: the peer that it is with.
  std::optional<uint64_t> operation = {};
  friend bool operator==(const DeviceEvent&, const DeviceEvent&) = default;
};

// Returns the relevant events of a chunk, decoded with its attributes, in the order of the ring.
// Numbers may be stored as text. Skips events without a place in the ring. Pure. An attribute that
// is neither a number nor a decimal text counts as missing.
std::vector<DeviceEvent> DeviceEventsOf(const DecodedChunk& chunk);

}  // namespace neurontrace
