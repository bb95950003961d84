// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event.h"

namespace neurontrace {

// What an event of a runtime's ring tells about the clocks of a core.
enum class DeviceEventType : uint8_t {
  kOther,       // nothing
  kRunning,     // the device runs an execution
  kDevice,      // anything else that is stamped by the device's counter
  kCollective,  // the same: the device takes part in one
  kSyncPoint,   // both clocks
  // The host, around an execution, in this order:
  kPrepare,  // before it submits
  kCore,     // submits, and waits
  kWait,
  kFinish,   // after it knows of the end
  kBarrier,  // meets the other hosts
};

// Knows the names that other versions of the runtime use too.
DeviceEventType DeviceEventTypeOf(std::string_view event_type);

// As much of one event as clocks need.
struct DeviceEvent {
  DeviceEventType type = DeviceEventType::kOther;
  Phase phase = Phase::kOther;
  uint64_t sequence = 0;      // nc_local_id: its place in the ring
  uint64_t tracking_id = 0;   // what a start and its stop have in common
  uint64_t timestamp_ns = 0;  // the host's clock; of a device's event: as the runtime computed it
  std::optional<uint64_t> exec_id = {};
  std::optional<uint64_t> nc_timestamp_ns = {};
  std::optional<uint64_t> cpu_timestamp_ns = {};
  std::optional<uint64_t> device_core_idx = {};
  // Of a collective: which of the execution's. Of a barrier: the one peer that it is with.
  std::optional<uint64_t> operation = {};
  friend bool operator==(const DeviceEvent&, const DeviceEvent&) = default;
};

// The events of a chunk, decoded with its attributes, that have something to tell, in the order of
// the ring. Numbers may have come as text. Events without a place in the ring are passed over.
std::vector<DeviceEvent> DeviceEventsOf(const DecodedChunk& chunk);

}  // namespace neurontrace
