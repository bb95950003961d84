// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "trace/event.h"

namespace neurontrace {

// One element of traceEvents in the words of trace/event.h. Views point into the parser.
struct FrameworkEvent {
  Shape shape;
  EventFields fields;
  std::vector<AttributeValue> values;  // one for each key of the shape
};

// Turns one element of a Chrome-style "traceEvents" array into an event, losing nothing:
//
//   "cat"       -> event type; where there is none, the text of "ph"
//   "ph"        -> phase: X, i, C, M, s, t, f; any other is kOther with the attribute "phase"
//   "ts"        -> timestamp_ns = base + ts * 1000, by decimal arithmetic
//   "dur"       -> "dur_ns" of a complete event
//   "tid"       -> the field thread_id where it is a number from 0, else the attribute "tid"
//   "id"        -> "flow_id" of flow events
//   "args"      -> each member an attribute in data scope
//   all else    -> attributes in top scope: name, pid, bp, s, …
//
// A time with digits below a nanosecond keeps its text in the attribute "ts" or "dur". An event
// without a time (metadata mostly) gets that of the event before it. Numbers that are not finite
// become strings. One thread at a time; reused from event to event without allocating.
class TraceEventParser {
 public:
  // `base_time_ns` is added to every "ts" (0 where they count from the epoch); `first_time_ns` is
  // given to events without "ts" that come before any with one.
  TraceEventParser(uint64_t base_time_ns, uint64_t first_time_ns);
  ~TraceEventParser();
  TraceEventParser(TraceEventParser&&) noexcept;
  TraceEventParser& operator=(TraceEventParser&&) noexcept;

  // `element` must be followed by ElementCutter::kPaddingBytes readable bytes. The event holds
  // until the next call. INVALID_ARGUMENT for what is no such event, RESOURCE_EXHAUSTED for more
  // than limits::kAttributesPerEventMax attributes.
  absl::Status Parse(std::string_view element, FrameworkEvent& event);

  // Whether the event parsed last had a time of its own.
  bool had_time() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
