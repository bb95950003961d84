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

// Collects events and encodes them column by column; docs/formats/chunk.md describes the bytes.
// Reused from chunk to chunk: Finish empties it and keeps its memory. One thread at a time.
//
// Producers intern a shape once per chunk and then append rows to it by number, so that a row costs
// no look-up:
//
//   ShapeId shape = builder.InternShape({...});      // again after every Finish
//   builder.Append(shape, fields, values);           // values in the order of the shape's keys
//
// Every reader accepts what it accepts: the columns stay under all limits, and under
// limits::kChunkBytesMax even if zstd cannot make them smaller.
class EventChunkBuilder {
 public:
  using ShapeId = uint32_t;
  static constexpr ShapeId kNoShape = 0xffffffffu;

  EventChunkBuilder();
  ~EventChunkBuilder();
  EventChunkBuilder(EventChunkBuilder&&) noexcept;
  EventChunkBuilder& operator=(EventChunkBuilder&&) noexcept;

  // Returns the number of this shape in the current chunk; the timestamp counts as present. Fails
  // with RESOURCE_EXHAUSTED if the chunk has no room for a further shape or string: the caller
  // finishes it and tries again, which then succeeds. Fails with INVALID_ARGUMENT for a shape that
  // no chunk may contain: too many keys, a name that is too long, a value outside its enum, a
  // quoted field that is not present.
  absl::StatusOr<ShapeId> InternShape(const Shape& shape);

  // Adds one event. `values` has one entry for each key of the shape, of that key's type; fields
  // that the shape does not have are ignored. Fails with RESOURCE_EXHAUSTED if the chunk is full:
  // the caller finishes it, interns the shape again and tries again, which then succeeds. Fails
  // with INVALID_ARGUMENT for an event that no chunk may contain: a string longer than
  // limits::kStringBytesMax, a double that is not finite, strings of more than about 2 MiB
  // together. After an error the event has not been added.
  absl::Status Append(ShapeId shape, const EventFields& fields,
                      std::span<const AttributeValue> values);

  // Returns the number of events since the last Finish.
  uint32_t event_count() const;
  // Returns roughly the size of what Finish would return, before compression. Decides when a chunk
  // is closed.
  size_t approximate_bytes() const;

  // Encodes the appended events in the order of raw timestamps (stable), and starts over.
  EncodedColumns Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
