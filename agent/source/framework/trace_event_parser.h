// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "agent/source/framework/decimal_time.h"
#include "agent/source/framework/time_census.h"
#include "lib/trace/event.h"

namespace neurontrace {

// Which end of a span an element is; the input of SpanJoiner.
struct SpanEdge {
  enum class Kind : uint8_t { kNone, kBegin, kEnd };
  Kind kind = Kind::kNone;
  bool is_async = false;      // known by an id rather than by its thread
  bool has_category = false;  // "cat" is there
  std::string_view name;
  std::string track;  // what its other end has in common with it: the thread, or the id
};

// One element of traceEvents in the vocabulary of lib/trace/event.h. Views point into the parser
// that filled it in.
struct FrameworkEvent {
  Shape shape;
  EventFields fields;
  std::vector<AttributeValue> values;  // one for each key of the shape
  SpanEdge edge;
  std::string_view name;              // empty where it is no text
  std::string_view time_text;         // "ts" as it is in the file
  std::string_view invalid_duration;  // why its duration is not used; empty: it is, or has none
  uint32_t values_not_numeric = 0;    // of a counter
};

// Turns one element of a Chrome-style "traceEvents" array into an event, losing nothing:
//
//   "cat"       -> event type; where there is none, the text of "ph"
//   "ph"        -> phase: X, i, C, M, s, t, f; B, b, S begin a span and E, e, F end one; I, n, T
//                  and p are instants; any other is kOther. What the phase does not tell is the
//                  attribute "phase".
//   "ts"        -> timestamp_ns = base + ts * 1000, by decimal arithmetic
//   "dur"       -> "dur_ns" of a complete event. One that is absent, negative, no number, or ends
//                  outside the bounds is 0, and the attribute kDurationMadeUpKey says why.
//   "tid"       -> the field thread_id where it is a number from 0, else the attribute "tid"
//   "id"        -> "flow_id" of flow events
//   "args"      -> each member an attribute in data scope; those of a counter are numbers where
//                  they stand between quotes, too
//   all else    -> attributes in top scope: name, pid, bp, s, ...
//
// A time with digits below a nanosecond keeps its text in the attribute "ts" or "dur". Metadata
// without a usable time gets that of the event before it. Numbers that are not finite become
// strings. One thread at a time; reused from event to event without allocating.
class TraceEventParser {
 public:
  // `base_time_ns` is added to every "ts" (0 if they count from the epoch); `first_time_ns` is
  // given to metadata that comes before any event with a time; times outside `bounds` are not
  // usable.
  TraceEventParser(uint64_t base_time_ns, uint64_t first_time_ns, const TimeBounds& bounds = {});
  ~TraceEventParser();
  TraceEventParser(TraceEventParser&&) noexcept;
  TraceEventParser& operator=(TraceEventParser&&) noexcept;

  // Parses `element`, which must be followed by ElementCutter::kPaddingBytes readable bytes. The
  // event is valid until the next call. Fails with INVALID_ARGUMENT for anything but such an event,
  // with RESOURCE_EXHAUSTED for more than limits::kAttributesPerEventMax attributes, and with
  // OUT_OF_RANGE for an event without a usable time; everything but its time is valid in that case.
  absl::Status Parse(std::string_view element, FrameworkEvent& event);

  // Returns "ts" of the element parsed last, without the base, if it is a number and the element is
  // not metadata; regardless of the result of Parse.
  const std::optional<DecimalTime>& event_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
