// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <protozero/types.hpp>

// The fields that are checked, by number and wire type, from Perfetto's protos/perfetto/trace. They
// are not shared with the exporter, so that a wrong number there is found here.
// docs/formats/pftrace.md describes the format.
//
// Each constant is a tag as it is in the file: the field's number and wire type. A namespace has
// the fields of one message, so that equal numbers of different messages do not mix. Constants
// without a wire type are values.
namespace neurontrace::perfetto_read {

// Return the tag of a field of this wire type.
constexpr uint32_t Varint(uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::varint);
}
constexpr uint32_t Fixed64(uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::fixed64);
}
constexpr uint32_t Bytes(uint32_t number) {
  return protozero::tag_and_type(number, protozero::pbf_wire_type::length_delimited);
}

// TracePacket, in trace_packet.proto.
namespace packet {
inline constexpr uint32_t kClockSnapshot = Bytes(6);
// In units of the packet's clock, see kTimestampClockId.
inline constexpr uint32_t kTimestamp = Varint(8);
// The sequence (trusted_packet_sequence_id), whose state the packet uses.
inline constexpr uint32_t kSequenceId = Varint(10);
inline constexpr uint32_t kTrackEvent = Bytes(11);
inline constexpr uint32_t kInternedData = Bytes(12);
inline constexpr uint32_t kSequenceFlags = Varint(13);
inline constexpr uint32_t kStateCleared = Varint(41);  // older than the flags
// Not 0: packets of the same sequence before this one were lost.
inline constexpr uint32_t kPreviousPacketDropped = Varint(42);
inline constexpr uint32_t kThreadDescriptor = Bytes(44);  // older than tracks
// A zlib stream of packets.
inline constexpr uint32_t kCompressed = Bytes(50);
inline constexpr uint32_t kTimestampClockId = Varint(58);
// Defaults for later packets of the sequence.
inline constexpr uint32_t kDefaults = Bytes(59);
inline constexpr uint32_t kTrackDescriptor = Bytes(60);
inline constexpr uint32_t kMachineId = Varint(98);
inline constexpr uint32_t kTraceAttributes = Bytes(126);
inline constexpr uint32_t kZstdCompressed = Bytes(133);
// Bits of kSequenceFlags.
inline constexpr uint64_t kFlagStateCleared = 1;
inline constexpr uint64_t kFlagNeedsState = 2;
}  // namespace packet
// TracePacketDefaults, in trace_packet_defaults.proto.
namespace defaults {
inline constexpr uint32_t kTrackEvent = Bytes(11);
inline constexpr uint32_t kTimestampClockId = Varint(58);
}  // namespace defaults
// ClockSnapshot and its Clock, in clock_snapshot.proto.
namespace clocks {
inline constexpr uint32_t kClock = Bytes(1);
// The clock of the trace; 0: Perfetto's default.
inline constexpr uint32_t kPrimaryTraceClock = Varint(2);
inline constexpr uint32_t kClockId = Varint(1);  // of a Clock, like the following ones
inline constexpr uint32_t kTimestamp = Varint(2);
inline constexpr uint32_t kIsIncremental = Varint(3);
inline constexpr uint32_t kMultiplierNs = Varint(4);
// Numbers of builtin clocks, in protos/perfetto/common/builtin_clock.proto.
inline constexpr uint32_t kRealtime = 1;
inline constexpr uint32_t kBoottime = 6;
inline constexpr uint32_t kTraceFile = 11;  // the clock of a file without snapshots
// Clocks in this range belong to one sequence.
inline constexpr uint32_t kSequenceScopedFirst = 64;
inline constexpr uint32_t kSequenceScopedLast = 127;
}  // namespace clocks
// TrackDescriptor, in track_event/track_descriptor.proto.
namespace descriptor {
inline constexpr uint32_t kUuid = Varint(1);
inline constexpr uint32_t kName = Bytes(2);
inline constexpr uint32_t kProcess = Bytes(3);
inline constexpr uint32_t kThread = Bytes(4);
inline constexpr uint32_t kParentUuid = Varint(5);
inline constexpr uint32_t kCounter = Bytes(8);
inline constexpr uint32_t kStaticName = Bytes(10);
inline constexpr uint32_t kChildOrdering = Varint(11);
inline constexpr uint32_t kSiblingOrderRank = Varint(12);
inline constexpr uint32_t kAtraceName = Bytes(13);
inline constexpr uint32_t kDescription = Bytes(14);
inline constexpr uint32_t kSiblingMergeBehavior = Varint(15);
// A value of kSiblingMergeBehavior.
inline constexpr uint64_t kMergeNone = 2;
// Fields of ProcessDescriptor and ThreadDescriptor.
inline constexpr uint32_t kPid = Varint(1);        // of a process and of a thread
inline constexpr uint32_t kSortIndex = Varint(3);  // of both
inline constexpr uint32_t kProcessName = Bytes(6);
inline constexpr uint32_t kTid = Varint(2);
inline constexpr uint32_t kThreadName = Bytes(5);
}  // namespace descriptor
// InternedData, in interned_data/interned_data.proto, and the entries of its lists.
namespace interned {
inline constexpr uint32_t kCategories = Bytes(1);
inline constexpr uint32_t kEventNames = Bytes(2);
inline constexpr uint32_t kAnnotationNames = Bytes(3);
inline constexpr uint32_t kStringValues = Bytes(29);
inline constexpr uint32_t kIid = Varint(1);
inline constexpr uint32_t kText = Bytes(2);
}  // namespace interned
// TrackEvent, in track_event/track_event.proto.
namespace event {
inline constexpr uint32_t kTimestampDeltaUs = Varint(1);
inline constexpr uint32_t kCategoryIid = Varint(3);
inline constexpr uint32_t kAnnotation = Bytes(4);
inline constexpr uint32_t kLegacy = Bytes(6);
inline constexpr uint32_t kType = Varint(9);
inline constexpr uint32_t kNameIid = Varint(10);
inline constexpr uint32_t kTrackUuid = Varint(11);
inline constexpr uint32_t kExtraCounterValue = Varint(12);
inline constexpr uint32_t kTimestampAbsoluteUs = Varint(16);
inline constexpr uint32_t kCategory = Bytes(22);
inline constexpr uint32_t kName = Bytes(23);
inline constexpr uint32_t kCounterValue = Varint(30);
inline constexpr uint32_t kExtraCounterUuid = Varint(31);
inline constexpr uint32_t kDoubleCounterValue = Fixed64(44);
inline constexpr uint32_t kExtraDoubleCounterUuid = Varint(45);
inline constexpr uint32_t kExtraDoubleCounterValue = Fixed64(46);
inline constexpr uint32_t kFlowId = Fixed64(47);
inline constexpr uint32_t kTerminatingFlowId = Fixed64(48);
inline constexpr uint32_t kExtensionFirst = 1'000u << 3;  // of any wire type
inline constexpr uint32_t kExtensionLast = (9'999u << 3) + 7;
}  // namespace event
namespace legacy {  // of the LegacyEvent in an event
inline constexpr uint32_t kPhase = Varint(2);
inline constexpr uint32_t kBindId = Varint(8);
inline constexpr uint32_t kFlowDirection = Varint(13);
inline constexpr uint32_t kPidOverride = Varint(18);
inline constexpr uint32_t kTidOverride = Varint(19);
inline constexpr uint64_t kFlowIn = 1;
inline constexpr uint64_t kFlowInOut = 3;  // the last direction
}  // namespace legacy
// DebugAnnotation, in track_event/debug_annotation.proto.
namespace annotation {
inline constexpr uint32_t kNameIid = Varint(1);
inline constexpr uint32_t kUintValue = Varint(3);
inline constexpr uint32_t kIntValue = Varint(4);
inline constexpr uint32_t kStringValueIid = Varint(17);
}  // namespace annotation
namespace attributes {
inline constexpr uint32_t kAttribute = Bytes(1);
inline constexpr uint32_t kKey = Bytes(1);
inline constexpr uint32_t kLongValue = Varint(2);
inline constexpr uint32_t kStringValue = Bytes(3);
}  // namespace attributes

// Values of event::kType.
enum EventType : uint64_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4, kState = 5 };

}  // namespace neurontrace::perfetto_read
