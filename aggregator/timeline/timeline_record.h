// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/event.h"

namespace neurontrace {

// The formats that exporters write have signed times in nanoseconds; later times are shown here.
// The limit is one below the type's, so that the end of the time slice that shows them fits as
// well.
inline constexpr uint64_t kTimeMaxNs = INT64_MAX - 1;

// A shape with its texts. Chunks share equal shapes, so that what an exporter derives from one
// serves all of them. Constant. Lives as long as the reading or, if its number is
// ShapeTable::kShapesMax or more, as long as its chunk's names.
struct SharedShape {
  // Unique in one reading, from 0 on: exporters index their plans by it.
  uint64_t number = 0;
  Shape shape;  // texts point into `text`
  std::string text;
};

// The dictionary of one chunk: what the records from that chunk refer to. Constant once records
// exist, so that any thread may read it. Shared by the windows of the chunk.
struct ChunkNames {
  // Unique in one reading, so that exporters can keep translations of it.
  uint64_t serial = 0;
  std::vector<const SharedShape*> shapes;
  // Shapes that ShapeTable does not keep.
  std::vector<std::shared_ptr<const SharedShape>> own_shapes;
  std::vector<std::string_view> strings;  // point into `text`
  std::string text;
  // Memory that the names take, roughly.
  size_t bytes = 0;
};

// What a record shows. The numbers are not stored anywhere.
enum class RecordKind : uint8_t {
  kSpan = 0,
  kInstant,
  kFlowStart,
  kFlowStep,
  kFlowEnd,
  kCounter,
  // The stop event of a span that was yielded earlier with kStopFollows. start_ns is the time of
  // the stop, span_id that of the span, and the attributes are those of the stop (as start
  // attributes).
  kStopAttributes,
  // An event with a phase that the runtime did not name. It is shown as an instant.
  kOther,
};

// The following are bits of TimelineRecord::flags.

// No stop is known: the span ends where its stream ends.
inline constexpr uint8_t kOpen = 1;
// Only the stop is known: the record has no length and has the attributes of the stop.
inline constexpr uint8_t kStartLost = 2;
// The stop is in a later chunk: a record of kind kStopAttributes follows.
inline constexpr uint8_t kStopFollows = 4;
// The event has a sequence id of the runtime: nrta_seq_id() may be called.
inline constexpr uint8_t kHasNrtaSeqId = 8;
// Its clock has a map, so that the recorded stamp, raw_start_ns(), differs from start_ns.
inline constexpr uint8_t kHasRawStart = 16;
// A device stamped the event, and the record's times come from that stamp through the device's map.
inline constexpr uint8_t kDeviceClock = 32;
// A device stamped the event, but the record's times are those that the runtime derived from the
// stamp: no bound is known of them. Never set if no clocks are known at all.
inline constexpr uint8_t kVendorClock = 64;
// The length is unknown, because the one in the event's file is impossible. It is 0 here, and must
// be in no sum and no quantile. If the end of the span is in another chunk, only the attributes of
// the end have this mark.
inline constexpr uint8_t kInvalidLength = 128;

// One item of the timeline. Lives as long as the batch that it came in. It has no virtual function
// and no string, because a reading holds hundreds of thousands of them.
struct TimelineRecord {
  uint64_t start_ns = 0;  // reference time
  uint64_t end_ns = 0;    // not before start_ns; equal for all but spans
  // The runtime's event id, 0 if there is none.
  uint64_t id = 0;
  uint64_t thread_id = 0;
  // With kStopFollows and in kStopAttributes: identifies the span, unique in one reading.
  uint64_t span_id = 0;
  // Start attributes, then stop attributes, then the values that flags announce: the sequence id,
  // the raw start, the host's start, the device's bound. Points into the window.
  const uint64_t* values = nullptr;
  const ChunkNames* names = nullptr;
  // Of the start, or of the only event.
  const SharedShape* shape = nullptr;
  // Of the stop if it is in the same chunk, else nullptr.
  const SharedShape* stop_shape = nullptr;
  uint32_t stream = 0;  // index into TimelineReader::streams()
  RecordKind kind = RecordKind::kSpan;
  uint8_t flags = 0;

  const Shape& start() const { return shape->shape; }
  bool has_stop() const { return stop_shape != nullptr; }
  const Shape& stop() const { return stop_shape->shape; }
  // Return one value for each key of start() and of stop(), as DecodedChunk::column has them.
  std::span<const uint64_t> start_values() const { return {values, start().keys.size()}; }
  std::span<const uint64_t> stop_values() const {
    return {values + start().keys.size(), has_stop() ? stop().keys.size() : 0};
  }
  // Returns the text of a value of type string or JSON.
  std::string_view text(uint64_t value) const { return names->strings[value]; }
  // Requires kHasNrtaSeqId.
  uint64_t nrta_seq_id() const { return values[attributes()]; }

  // Returns the stamp of the start as it was recorded.
  uint64_t raw_start_ns() const {
    return (flags & kHasRawStart) != 0 ? values[clock_values()] : start_ns;
  }
  // Return the start by the host's clock, and how far that can be from the truth because of the
  // device's clock. Require kDeviceClock.
  uint64_t host_start_ns() const { return values[clock_values() + 1]; }
  uint64_t device_bound_ns() const { return values[clock_values() + 2]; }

 private:
  size_t attributes() const { return start().keys.size() + stop_values().size(); }
  size_t clock_values() const { return attributes() + ((flags & kHasNrtaSeqId) != 0 ? 1 : 0); }
};

}  // namespace neurontrace
