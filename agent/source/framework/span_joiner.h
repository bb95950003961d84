// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "agent/source/framework/trace_event_parser.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {

// Joins the two ends of spans that a trace file writes as two elements: B and E of a thread, b and
// e of an id (Trace Event Format, "Duration Events" and "Async Events"). Both get the number of the
// span in the field tracking_id, and the end gets the event type of the begin, so that readers pair
// them as they pair starts and stops of the runtime.
//
// An end closes the span that began last on its thread (or under its id) and is still open. An end
// with a name closes the last span of that name; spans of the thread that began inside it have lost
// their ends and stay open. An end that matches none has lost its begin and gets a number of its
// own. An end before its begin is moved to the begin and marked.
//
// The result depends only on the elements before, so reading a file again gives the same numbers.
// Holds the open spans, up to limits::kFrameworkOpenSpansMax; beyond, the older half is given up.
// Used by one thread at a time.
class SpanJoiner {
 public:
  // Of the open spans together; bytes are those of their names and types.
  struct Limits {
    size_t spans = limits::kFrameworkOpenSpansMax;
    size_t bytes = limits::kFrameworkOpenSpanBytesMax;
  };
  SpanJoiner() : SpanJoiner(Limits()) {}
  explicit SpanJoiner(const Limits& limits) : limits_(limits) {}

  enum class Outcome : uint8_t {
    kNone,       // not an end of a span
    kBegun,      // opened
    kJoined,     // this event ends a span
    kBeginLost,  // this event ends a span whose begin is missing
  };
  // Processes one event. `element` is its index in the file, which ascends from call to call.
  // `is_lost` is for an event that is not kept because it has no time; its other end must not be
  // matched with something else.
  Outcome Join(uint64_t element, FrameworkEvent& event, bool is_lost = false);

  // Spans without an end, including those that were given up, and the first few of them by name and
  // element. To be asked at the end of the file.
  struct Unended {
    uint64_t count = 0;
    std::vector<std::string> first;
  };
  static constexpr size_t kNamedMax = 16;
  Unended unended() const;
  // Returns the number of spans that were given up because too many were open.
  uint64_t given_up() const { return given_up_; }

 private:
  // A span that has begun and not ended.
  struct Open {
    uint64_t number = 0;  // of the element, from 1
    uint64_t start_ns = 0;
    bool is_lost = false;
    std::string event_type;
    std::string name;
  };
  using Stack = std::vector<Open>;

  // Handle one end of a span each; both set the event's tracking id.
  Outcome Begin(uint64_t element, FrameworkEvent& event, bool is_lost);
  Outcome End(uint64_t element, FrameworkEvent& event, bool is_lost);
  void Leave(const Open& open);  // without an end
  // Subtracts the span from the counts.
  void Forget(const Open& open);
  // Removes the spans that began first, as if their ends were missing.
  void GiveUpOlderHalf();
  static size_t BytesOf(const Open& open);

  Limits limits_;
  // Only tracks with an open span have an entry.
  absl::flat_hash_map<std::string, Stack> stacks_;  // by SpanEdge::track
  size_t open_count_ = 0;
  size_t open_bytes_ = 0;
  uint64_t given_up_ = 0;
  uint64_t left_ = 0;  // without an end, and not in stacks_ any more
  std::vector<std::string> left_names_;
  std::string event_type_;  // of the event at hand
};

}  // namespace neurontrace
