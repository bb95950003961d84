// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lib/trace/event.h"

namespace neurontrace {

// The runtime moves the time of events that a device stamped to the host's clock by one
// synchronisation point, and keeps the device's own stamp as an attribute. These functions find
// such attributes once for each shape. All of them are pure.
//
// Returns the index of the device's stamp (`nc_timestamp_ns`, in nanoseconds of the device's
// counter) among the shape's keys, or nullopt if the host stamped the event.
std::optional<uint32_t> DeviceStampKey(const Shape& shape);

// Returns the index of the physical core's number (`device_core_idx`), or nullopt.
std::optional<uint32_t> DeviceCoreKey(const Shape& shape);

// Returns the index of the execution's number (`exec_id`), or nullopt.
std::optional<uint32_t> DeviceExecutionKey(const Shape& shape);

}  // namespace neurontrace
