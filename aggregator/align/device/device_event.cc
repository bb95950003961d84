// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/device/device_event.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <utility>

namespace neurontrace {
namespace {

// Names of events by the type that they have for clocks. Versions of the runtime differ in several.
constexpr std::pair<std::string_view, DeviceEventType> kTypes[] = {
    {"nc_exec_running", DeviceEventType::kRunning},
    {"device_exec", DeviceEventType::kRunning},
    {"cc_running", DeviceEventType::kCollective},
    {"cc_exec", DeviceEventType::kCollective},
    {"cc_exec_barrier", DeviceEventType::kDevice},
    {"nc_model_switch", DeviceEventType::kDevice},
    {"numerical_err", DeviceEventType::kDevice},
    {"hw_notify", DeviceEventType::kDevice},
    {"timestamp_sync_point", DeviceEventType::kSyncPoint},
    {"kbl_exec_pre", DeviceEventType::kPrepare},
    {"kbl_exec_core", DeviceEventType::kCore},
    {"kbl_exec_wait", DeviceEventType::kWait},
    {"kbl_infer_exec_wait", DeviceEventType::kWait},
    {"kbl_exec_post", DeviceEventType::kFinish},
    {"enc_barrier", DeviceEventType::kBarrier},
};

// The attributes that are read, as indices into ShapeColumns and kNames.
enum Attribute : size_t {
  kExecId,
  kDeviceTime,
  kHostTime,
  kCoreIndex,
  kOperation,
  kPeer,
  kAttributes
};
// The order is that of Attribute.
constexpr std::string_view kNames[kAttributes] = {
    "exec_id", "nc_timestamp_ns", "cpu_timestamp_ns", "device_core_idx", "op_id", "peer_id"};

// Where the attributes of one shape are. Found once for each shape of a chunk, so that reading an
// event takes no look-up by name.
struct ShapeColumns {
  DeviceEventType type = DeviceEventType::kOther;
  Phase phase = Phase::kOther;
  std::array<std::span<const uint64_t>, kAttributes> column = {};  // empty: no such key
  std::array<bool, kAttributes> is_text = {};
};

// Returns where to find the attributes of shape `number`. Its type is kOther if no event of the
// shape is of use: the name is unknown, or there is no place in the ring.
ShapeColumns ColumnsOf(const DecodedChunk& chunk, uint32_t number) {
  const Shape& shape = chunk.shapes()[number];
  ShapeColumns columns;
  columns.phase = shape.phase;
  if ((shape.present & FieldBit(Field::kNcLocalId)) == 0) return columns;
  columns.type = DeviceEventTypeOf(shape.event_type);
  if (columns.type == DeviceEventType::kOther) return columns;
  for (uint32_t k = 0; k < shape.keys.size(); ++k) {
    const ShapeKey& key = shape.keys[k];
    const auto name = std::find(std::begin(kNames), std::end(kNames), key.name);
    // Only attributes of the event's own data count, and only two types can be a number.
    if (name == std::end(kNames) || key.scope != KeyScope::kData) continue;
    if (key.type != ValueType::kUint && key.type != ValueType::kString) continue;
    const auto at = static_cast<size_t>(name - std::begin(kNames));
    columns.column[at] = chunk.column(number, k);
    columns.is_text[at] = key.type == ValueType::kString;
  }
  return columns;
}

// Returns the attribute of an event; nullopt if the shape has none or the text is not a whole
// number. `row` is the event's row within its shape.
std::optional<uint64_t> NumberOf(const DecodedChunk& chunk, const ShapeColumns& columns,
                                 Attribute attribute, uint32_t row) {
  if (columns.column[attribute].empty()) return std::nullopt;
  const uint64_t bits = columns.column[attribute][row];
  if (!columns.is_text[attribute]) return bits;
  const std::string_view text = chunk.strings()[bits];
  uint64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc{} || end.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns the number that DeviceEvent::operation holds for this type of event.
std::optional<uint64_t> OperationOf(const DecodedChunk& chunk, const ShapeColumns& columns,
                                    uint32_t row) {
  if (columns.type == DeviceEventType::kCollective) {
    return NumberOf(chunk, columns, kOperation, row);
  }
  if (columns.type == DeviceEventType::kBarrier) return NumberOf(chunk, columns, kPeer, row);
  return std::nullopt;
}

}  // namespace

// The table is short, and only shapes are looked up.
DeviceEventType DeviceEventTypeOf(std::string_view event_type) {
  for (const auto& [name, type] : kTypes) {
    if (name == event_type) return type;
  }
  return DeviceEventType::kOther;
}

// Sorts by the place in the ring, which need not be the order of the chunk.
std::vector<DeviceEvent> DeviceEventsOf(const DecodedChunk& chunk) {
  std::vector<ShapeColumns> columns;
  for (uint32_t i = 0; i < chunk.shapes().size(); ++i) columns.push_back(ColumnsOf(chunk, i));
  std::vector<DeviceEvent> events;
  for (size_t i = 0; i < chunk.size(); ++i) {
    const ShapeColumns& shape = columns[chunk.shape_of()[i]];
    if (shape.type == DeviceEventType::kOther) continue;
    const uint32_t row = chunk.row_of()[i];
    events.push_back({.type = shape.type,
                      .phase = shape.phase,
                      .sequence = chunk.nc_local_id()[i],
                      .tracking_id = chunk.tracking_id()[i],
                      .timestamp_ns = chunk.timestamp_ns()[i],
                      .exec_id = NumberOf(chunk, shape, kExecId, row),
                      .nc_timestamp_ns = NumberOf(chunk, shape, kDeviceTime, row),
                      .cpu_timestamp_ns = NumberOf(chunk, shape, kHostTime, row),
                      .device_core_idx = NumberOf(chunk, shape, kCoreIndex, row),
                      .operation = OperationOf(chunk, shape, row)});
  }
  // The sort is stable: events with the same number keep the order of the chunk.
  std::stable_sort(events.begin(), events.end(), [](const DeviceEvent& a, const DeviceEvent& b) {
    return a.sequence < b.sequence;
  });
  return events;
}

}  // namespace neurontrace
