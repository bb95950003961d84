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

// Reference time is signed in the files we write: what is later stands here.
inline constexpr uint64_t kTimeMaxNs = INT64_MAX - 1;

// A shape with its texts. Chunks share those that are alike, so that what is worked out for one
// serves all. Constant; lives as long as the reading or, if its number is ShapeTable::kShapesMax or
// more, as its chunk.
struct SharedShape {
  uint64_t number = 0;  // unique in one reading, from 0 on
  Shape shape;          // texts point into `text`
  std::string text;
};

// The dictionary of one chunk: what the records that came from it refer to. Constant once records
// exist.
struct ChunkNames {
  uint64_t serial = 0;  // unique in one reading, so that translations of it can be kept
  std::vector<const SharedShape*> shapes;
  std::vector<std::shared_ptr<const SharedShape>> own_shapes;  // those that are not shared
  std::vector<std::string_view> strings;                       // point into `text`
  std::string text;
  size_t bytes = 0;  // of memory, about
};

enum class RecordKind : uint8_t {
  kSpan = 0,
  kInstant,
  kFlowStart,
  kFlowStep,
  kFlowEnd,
  kCounter,
  // The stop event of a span that was yielded earlier with kStopFollows: start_ns is the time of
  // the stop, span_id the span's, and the attributes are the stop's (as start attributes), if any.
  kStopAttributes,
  kOther,  // an event whose phase the runtime did not name: shown as an instant
};

// Bits of TimelineRecord::flags.
inline constexpr uint8_t kOpen = 1;         // no stop is known: ends where its stream ends
inline constexpr uint8_t kStartLost = 2;    // only the stop is known: no length, its attributes
inline constexpr uint8_t kStopFollows = 4;  // the stop lies in another chunk: kStopAttributes come
inline constexpr uint8_t kHasNrtaSeqId = 8;
inline constexpr uint8_t kHasRawStart = 16;  // its clock has a map: the stamp is not start_ns
// A device stamped it, and its times come from there through the device's map.
inline constexpr uint8_t kDeviceClock = 32;
// A device stamped it, and its times are what the runtime made of that: no bound is known of them.
// Only where clocks are known at all.
inline constexpr uint8_t kVendorClock = 64;
// Its length is unknown: the one in its file is impossible. It is 0 here, and is to be in no sum
// and no quantile. (Of a span whose end is in another chunk only the attributes of the end say so.)
inline constexpr uint8_t kOddLength = 128;

// One thing on the timeline. Lives as long as the batch that it came in.
struct TimelineRecord {
  uint64_t start_ns = 0;  // reference time
  uint64_t end_ns = 0;    // not before start_ns; equal for all but spans
  uint64_t id = 0;        // the runtime's event id, 0 where absent
  uint64_t thread_id = 0;
  // With kStopFollows, and of its kStopAttributes: names the span; unique in one reading.
  uint64_t span_id = 0;
  const uint64_t* values = nullptr;  // start attributes, stop attributes, then what flags say
  const ChunkNames* names = nullptr;
  const SharedShape* shape = nullptr;       // of the start (or only) event
  const SharedShape* stop_shape = nullptr;  // of the stop, where it is in the same chunk
  uint32_t stream = 0;                      // index into TimelineReader::streams()
  RecordKind kind = RecordKind::kSpan;
  uint8_t flags = 0;

  const Shape& start() const { return shape->shape; }
  bool has_stop() const { return stop_shape != nullptr; }
  const Shape& stop() const { return stop_shape->shape; }
  // One value for each key of start(), and of stop(): as DecodedChunk::column has them.
  std::span<const uint64_t> start_values() const { return {values, start().keys.size()}; }
  std::span<const uint64_t> stop_values() const {
    return {values + start().keys.size(), has_stop() ? stop().keys.size() : 0};
  }
  std::string_view text(uint64_t value) const { return names->strings[value]; }
  // With kHasNrtaSeqId.
  uint64_t nrta_seq_id() const { return values[attributes()]; }

  // The stamp of the start as it was recorded.
  uint64_t raw_start_ns() const {
    return (flags & kHasRawStart) != 0 ? values[clock_values()] : start_ns;
  }
  // With kDeviceClock: the start by the host's clock, and how far that can be from the truth
  // because of the device's.
  uint64_t host_start_ns() const { return values[clock_values() + 1]; }
  uint64_t device_bound_ns() const { return values[clock_values() + 2]; }

 private:
  size_t attributes() const { return start().keys.size() + stop_values().size(); }
  size_t clock_values() const { return attributes() + ((flags & kHasNrtaSeqId) != 0 ? 1 : 0); }
};

}  // namespace neurontrace
