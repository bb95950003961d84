// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "lib/trace/event.h"

namespace neurontrace {

// Of events that a device stamped: the runtime moves their time to the host's clock by one
// synchronisation point, and keeps what the device said as an attribute.

// Index of the attribute (`nc_timestamp_ns`) among the shape's keys; nullopt: the host stamped it.
std::optional<uint32_t> DeviceStampKey(const Shape& shape);

// Index of the attribute that names the physical core (`device_core_idx`), where there is one.
std::optional<uint32_t> DeviceCoreKey(const Shape& shape);

// Index of the attribute that names the execution (`exec_id`), where there is one.
std::optional<uint32_t> DeviceExecutionKey(const Shape& shape);

}  // namespace neurontrace
