// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The fields of XProf's profile format that we write: openxla/xla,
// third_party/tsl/tsl/profiler/protobuf/xplane.proto. Constants only, with the numbers of that
// file.
namespace neurontrace::xspace {

// XSpace.
namespace space {
inline constexpr uint32_t kPlanes = 1;
inline constexpr uint32_t kWarnings = 3;
inline constexpr uint32_t kHostnames = 4;
}  // namespace space
// XPlane.
namespace plane {
inline constexpr uint32_t kId = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kLines = 3;
inline constexpr uint32_t kEventMetadata = 4;  // a map
inline constexpr uint32_t kStatMetadata = 5;   // a map
inline constexpr uint32_t kStats = 6;
}  // namespace plane
namespace map_entry {
inline constexpr uint32_t kKey = 1;
inline constexpr uint32_t kValue = 2;
}  // namespace map_entry
namespace metadata {  // of events and of stats
inline constexpr uint32_t kId = 1;
inline constexpr uint32_t kName = 2;
}  // namespace metadata
// XLine; the time of its events counts from kTimestampNs.
namespace line {
inline constexpr uint32_t kId = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kTimestampNs = 3;
inline constexpr uint32_t kEvents = 4;
inline constexpr uint32_t kDisplayId = 10;
}  // namespace line
// XEvent.
namespace event {
inline constexpr uint32_t kMetadataId = 1;
inline constexpr uint32_t kOffsetPs = 2;
inline constexpr uint32_t kDurationPs = 3;
inline constexpr uint32_t kStats = 4;
}  // namespace event
// XStat.
namespace stat {
inline constexpr uint32_t kMetadataId = 1;
inline constexpr uint32_t kDouble = 2;
inline constexpr uint32_t kUint64 = 3;
inline constexpr uint32_t kInt64 = 4;
inline constexpr uint32_t kString = 5;
// The id of a stat's metadata, whose name is the text.
inline constexpr uint32_t kReference = 7;
}  // namespace stat

// A flow is the value of a stat with this name: direction, id and category, from the lowest bit on.
inline constexpr char kFlowStat[] = "flow";
enum class FlowDirection : uint8_t { kIn = 1, kOut = 2, kInOut = 3 };
constexpr uint64_t Flow(FlowDirection direction, uint64_t id) {
  constexpr uint64_t kIdMask = (uint64_t{1} << 56) - 1;
  return static_cast<uint64_t>(direction) | (id & kIdMask) << 2;
}

}  // namespace neurontrace::xspace
