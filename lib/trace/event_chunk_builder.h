// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/event.h"

namespace neurontrace {

// The columns of one chunk after encoding, before zstd. No events are no bytes.
struct EncodedColumns {
  std::string bytes;
  uint32_t event_count = 0;
  uint64_t first_timestamp_ns = 0;
  uint64_t last_timestamp_ns = 0;
};

// Collects events and encodes them column by column; docs/formats/chunk.md has the bytes. Reused
// from chunk to chunk: Finish empties it and keeps its memory. One thread at a time.
//
// Producers intern a shape once per chunk and then append rows to it by number, so that a row costs
// no look-up:
//
//   ShapeId shape = builder.InternShape({...});      // again after every Finish
//   builder.Append(shape, fields, values);           // values in the order of the shape's keys
//
// Whatever it accepts passes every reader: the columns stay under all limits, and under
// limits::kChunkBytesMax even where zstd cannot make them smaller.
class EventChunkBuilder {
 public:
  using ShapeId = uint32_t;
  static constexpr ShapeId kNoShape = 0xffffffffu;

  EventChunkBuilder();
  ~EventChunkBuilder();
  EventChunkBuilder(EventChunkBuilder&&) noexcept;
  EventChunkBuilder& operator=(EventChunkBuilder&&) noexcept;

  // Number of this shape in the chunk at hand; the timestamp counts as present. RESOURCE_EXHAUSTED
  // when the chunk can take no further shape or string: finish it and try again, which then
  // succeeds. INVALID_ARGUMENT for what no chunk may hold: too many keys, a name too long, a value
  // outside its enum, a quoted field that is not present.
  absl::StatusOr<ShapeId> InternShape(const Shape& shape);

  // Adds one event. `values` has one entry for each key of the shape, of that key's type; fields
  // that the shape says are absent are not looked at. RESOURCE_EXHAUSTED when the chunk is full:
  // finish it, intern the shape again and try again, which then succeeds. INVALID_ARGUMENT for an
  // event that no chunk may hold: a string longer than limits::kStringBytesMax, a double that is
  // not finite, strings of more than about 2 MiB together. The event is then not in.
  absl::Status Append(ShapeId shape, const EventFields& fields,
                      std::span<const AttributeValue> values);

  uint32_t event_count() const;
  // Roughly what Finish would give, before compression.
  size_t approximate_bytes() const;

  // Encodes what was appended, in the order of raw timestamps (stable), and starts over.
  EncodedColumns Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
