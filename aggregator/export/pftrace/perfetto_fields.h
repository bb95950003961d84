// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// The numbers of the fields that we write of Perfetto's trace format, and of their values; see
// docs/formats/pftrace.md. They are frozen there, so they are here.
namespace neurontrace::perfetto {

namespace trace {
inline constexpr uint32_t kPacket = 1;
}
// TracePacket,
// https://github.com/google/perfetto/blob/main/protos/perfetto/trace/trace_packet.proto
namespace packet {
inline constexpr uint32_t kClockSnapshot = 6;
inline constexpr uint32_t kTimestamp = 8;
inline constexpr uint32_t kSequenceId = 10;
inline constexpr uint32_t kTrackEvent = 11;
inline constexpr uint32_t kInternedData = 12;
inline constexpr uint32_t kSequenceFlags = 13;
inline constexpr uint32_t kCompressed = 50;
inline constexpr uint32_t kDefaultsTimestampClockId = 58;  // of TracePacketDefaults
inline constexpr uint32_t kDefaults = 59;
inline constexpr uint32_t kTrackDescriptor = 60;
inline constexpr uint32_t kFirstOnSequence = 87;
inline constexpr uint32_t kTraceAttributes = 126;
inline constexpr uint32_t kFlagStateCleared = 1;
inline constexpr uint32_t kFlagNeedsState = 2;
}  // namespace packet
// ClockSnapshot (clock_snapshot.proto), and the ids of builtin clocks (builtin_clock.proto).
namespace clocks {
inline constexpr uint32_t kClock = 1;
inline constexpr uint32_t kPrimaryTraceClock = 2;
inline constexpr uint32_t kClockId = 1;  // of Clock
inline constexpr uint32_t kTimestamp = 2;
inline constexpr uint32_t kIsIncremental = 3;
inline constexpr uint32_t kRealtime = 1;
inline constexpr uint32_t kBoottime = 6;
inline constexpr uint32_t kIncremental = 64;  // the first that is private to a packet sequence
}  // namespace clocks
// TrackDescriptor with its ProcessDescriptor, ThreadDescriptor and CounterDescriptor.
namespace descriptor {
inline constexpr uint32_t kUuid = 1;
inline constexpr uint32_t kName = 2;
inline constexpr uint32_t kProcess = 3;
inline constexpr uint32_t kThread = 4;
inline constexpr uint32_t kParentUuid = 5;
inline constexpr uint32_t kCounter = 8;
inline constexpr uint32_t kChildOrdering = 11;
inline constexpr uint32_t kChildrenByRank = 3;
inline constexpr uint32_t kSiblingOrderRank = 12;
inline constexpr uint32_t kDescription = 14;
inline constexpr uint32_t kSiblingMergeBehavior = 15;
inline constexpr uint32_t kProcessOrdering = 19;
inline constexpr uint32_t kThreadOrdering = 20;
inline constexpr uint32_t kMergeNone = 2;
inline constexpr uint32_t kOrderingExplicit = 1;  // of processes and threads
inline constexpr uint32_t kCounterUnit = 3;       // of CounterDescriptor
inline constexpr uint32_t kCounterUnitNs = 1;
inline constexpr uint32_t kCounterUnitBytes = 3;
inline constexpr uint32_t kCounterUnitName = 6;  // of CounterDescriptor
inline constexpr uint32_t kCounterAxis = 7;      // y_axis_share_key
inline constexpr uint32_t kProcessPid = 1;
inline constexpr uint32_t kProcessSortIndex = 3;
inline constexpr uint32_t kProcessName = 6;
inline constexpr uint32_t kProcessLabels = 8;
inline constexpr uint32_t kThreadPid = 1;
inline constexpr uint32_t kThreadTid = 2;
inline constexpr uint32_t kThreadSortIndex = 3;
inline constexpr uint32_t kThreadName = 5;
}  // namespace descriptor
// InternedData, and the entries of all its lists.
namespace interned {
inline constexpr uint32_t kCategories = 1;
inline constexpr uint32_t kEventNames = 2;
inline constexpr uint32_t kAnnotationNames = 3;
inline constexpr uint32_t kStringValues = 29;
inline constexpr uint32_t kIid = 1;
inline constexpr uint32_t kText = 2;
}  // namespace interned
// TraceAttributes, key-value pairs about the whole trace.
namespace attributes {
inline constexpr uint32_t kAttribute = 1;
inline constexpr uint32_t kKey = 1;
inline constexpr uint32_t kLongValue = 2;
inline constexpr uint32_t kStringValue = 3;
}  // namespace attributes

// Tags (number << 3 | wire type) of the hot path, which writes them as bytes.
namespace tag {
inline constexpr uint8_t kPacket = 0x0a;
inline constexpr uint8_t kTimestamp = 0x40;
inline constexpr uint8_t kSequenceId = 0x50;
inline constexpr uint8_t kSequenceFlags = 0x68;
inline constexpr uint8_t kTrackEvent = 0x5a;
// TrackEvent
inline constexpr uint8_t kCategoryIid = 0x18;
inline constexpr uint8_t kAnnotation = 0x22;
inline constexpr uint8_t kLegacyEvent = 0x32;
inline constexpr uint8_t kType = 0x48;
inline constexpr uint8_t kNameIid = 0x50;
inline constexpr uint8_t kTrackUuid = 0x58;
inline constexpr uint32_t kCounterValue = 30 << 3;            // varint
inline constexpr uint32_t kDoubleCounterValue = 44 << 3 | 1;  // fixed64
inline constexpr uint32_t kFlowId = 47 << 3 | 1;              // fixed64
inline constexpr uint32_t kCorrelationId = 52 << 3;           // varint
// LegacyEvent, here what binds a slice to an arrow
inline constexpr uint8_t kLegacyBindId = 0x40;
inline constexpr uint8_t kLegacyFlowDirection = 0x68;
// DebugAnnotation
inline constexpr uint8_t kAnnotationNameIid = 0x08;
inline constexpr uint8_t kBoolValue = 0x10;
inline constexpr uint8_t kUintValue = 0x18;
inline constexpr uint8_t kIntValue = 0x20;
inline constexpr uint8_t kDoubleValue = 0x29;
inline constexpr uint8_t kStringValue = 0x32;
inline constexpr uint32_t kStringValueIid = 17 << 3;
}  // namespace tag

// FlowDirection::FLOW_IN of LegacyEvent.
inline constexpr uint8_t kLegacyFlowIn = 1;

// TrackEvent::Type.
enum class EventType : uint8_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };

}  // namespace neurontrace::perfetto
