// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/device_stamp.h"

#include <string_view>

namespace neurontrace {
namespace {

// Other types than unsigned numbers are ignored: their columns hold no number that arithmetic on
// times could use.
std::optional<uint32_t> NumberKey(const Shape& shape, std::string_view name) {
  for (uint32_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    if (key.scope == KeyScope::kData && key.type == ValueType::kUint && key.name == name) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> DeviceStampKey(const Shape& shape) {
  // The host stamped the synchronisation point itself; `nc_timestamp_ns` is the reading that it
  // pairs with that stamp.
  if (shape.event_type == "timestamp_sync_point") return std::nullopt;
  return NumberKey(shape, "nc_timestamp_ns");
}

std::optional<uint32_t> DeviceCoreKey(const Shape& shape) {
  return NumberKey(shape, "device_core_idx");
}

std::optional<uint32_t> DeviceExecutionKey(const Shape& shape) {
  return NumberKey(shape, "exec_id");
}

}  // namespace neurontrace
