// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// The vocabulary of one event. Events of a chunk are kept in columns (lib/trace/event_chunk.h).
// Properties that many events share (type, phase, keys and their types) form a shape, which is
// stored once. docs/developer/life_of_an_event.md follows an event through all processes.
namespace neurontrace {

// Values are in stored chunks: never change one. The first four are the runtime's; the others come
// from framework trace files (Chrome trace-event phases X, s, t, f, C, M, and B, E, b, e).
enum class Phase : uint8_t {
  kOther = 0,  // the text is kept as the top-level attribute "phase"
  kStart = 1,
  kStop = 2,
  kInstant = 3,
  kComplete = 4,   // has the top-level attribute "dur_ns"
  kFlowStart = 5,  // these three have the top-level attribute "flow_id"
  kFlowStep = 6,
  kFlowEnd = 7,
  kCounter = 8,
  kMetadata = 9,
  // The two ends of a framework's span. The agent has joined them: both carry the span's number in
  // the field tracking_id, and the type of the begin.
  kBegin = 10,
  kEnd = 11,
};
inline constexpr uint8_t kPhaseMax = 11;

// Return whether a span begins or ends with an event of this phase.
constexpr bool BeginsSpan(Phase phase) { return phase == Phase::kStart || phase == Phase::kBegin; }
constexpr bool EndsSpan(Phase phase) { return phase == Phase::kStop || phase == Phase::kEnd; }

// Fields that nearly every event has, each in a column of its own. A shape has two sets of them, as
// bits (1 << field): which are present, and which of those arrived as JSON strings ("123"), so that
// the original can be reproduced exactly. A field whose value does not fit (negative, fractional,
// null, an object) is kept as a top-level attribute instead.
enum class Field : uint8_t {
  kId = 0,
  kNcLocalId = 1,
  kTrackingId = 2,
  kThreadId = 3,
  kWorkerGid = 4,  // signed; the others are unsigned
  kNrtaSeqId = 5,
  kNcIdx = 6,      // presence only: the value is the stream's
  kTimestamp = 7,  // always present; see kTimestampMadeUpKey
};
// Name of the top-level attribute of an event that came without a usable timestamp. Its timestamp
// is the time at which the event was fetched.
inline constexpr std::string_view kTimestampMadeUpKey = "neurontrace.timestamp";
// Name of the top-level attribute of a framework's span whose length is unusable (negative, not a
// number, absent, beyond all other times of its file). Its text is the reason. The span has no
// length, and counts in no sum or quantile.
inline constexpr std::string_view kDurationMadeUpKey = "neurontrace.duration";
inline constexpr uint8_t kFieldCount = 8;
constexpr uint32_t FieldBit(Field field) { return 1u << static_cast<uint32_t>(field); }

// Values are in stored chunks: never change one.
enum class ValueType : uint8_t {
  kNull = 0,
  kBool = 1,
  kUint = 2,
  kInt = 3,     // only negative values
  kDouble = 4,  // only if the shortest text that reads back the same is the text that came
  kString = 5,  // decoded, UTF-8
  kJson = 6,    // raw text of anything else: objects, arrays, numbers written in an unusual way
};
inline constexpr uint8_t kValueTypeMax = 6;

// Where a key was in the source.
enum class KeyScope : uint8_t {
  kData = 0,  // in the event's "data" object (in "args" for framework traces)
  kTop = 1,   // beside the standard fields
};

// A key of a shape with the type of its values.
struct ShapeKey {
  std::string_view name;
  ValueType type = ValueType::kNull;
  KeyScope scope = KeyScope::kData;
  friend bool operator==(const ShapeKey&, const ShapeKey&) = default;
};

// The common properties of a group of events. `keys` are in the order of arrival. Texts are owned
// by the maker of the shape.
struct Shape {
  std::string_view event_type;
  Phase phase = Phase::kOther;
  uint32_t present = 0;  // FieldBit set
  uint32_t quoted = 0;   // FieldBit set, subset of present
  std::vector<ShapeKey> keys;
  friend bool operator==(const Shape&, const Shape&) = default;
};

// The standard fields of one event; fields that its shape does not have are 0.
struct EventFields {
  uint64_t timestamp_ns = 0;  // raw, in the clock domain of the chunk
  uint64_t id = 0;
  uint64_t nc_local_id = 0;
  uint64_t tracking_id = 0;
  uint64_t thread_id = 0;
  uint64_t nrta_seq_id = 0;
  int64_t worker_gid = 0;
  friend bool operator==(const EventFields&, const EventFields&) = default;
};

// One attribute value. `bits` holds bool, uint, int (two's complement) and double (bit pattern);
// `text` holds string and JSON, and is owned by the maker of the value.
struct AttributeValue {
  uint64_t bits = 0;
  std::string_view text;
};

}  // namespace neurontrace
