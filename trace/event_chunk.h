// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/event.h"

namespace neurontrace {

// The columns of one chunk after encoding, before zstd.
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
class EventChunkBuilder {
 public:
  using ShapeId = uint32_t;
  static constexpr ShapeId kNoShape = 0xffffffffu;

  EventChunkBuilder();
  ~EventChunkBuilder();
  EventChunkBuilder(EventChunkBuilder&&) noexcept;
  EventChunkBuilder& operator=(EventChunkBuilder&&) noexcept;

  // Number of this shape in the chunk at hand; RESOURCE_EXHAUSTED when the chunk can take no
  // further shape or string (finish it and try again). INVALID_ARGUMENT for what no chunk may hold:
  // too many keys, a name too long.
  absl::StatusOr<ShapeId> InternShape(const Shape& shape);

  // Adds one event. `values` has one entry for each key of the shape, of that key's type.
  // RESOURCE_EXHAUSTED when the chunk is full, INVALID_ARGUMENT for a string longer than
  // limits::kStringBytesMax; the event is then not in.
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

// zstd level 1 of `columns`, and back. Uncompress refuses (INVALID_ARGUMENT) anything but one frame
// of exactly `columns_bytes` bytes within the limits. Both reuse per-thread contexts.
std::string CompressColumns(std::string_view columns);
absl::Status UncompressColumns(std::string_view compressed, uint32_t columns_bytes,
                               std::string& out);

// A chunk's events in columns, for readers. Decode checks everything it touches: lengths, indexes,
// enums, order of timestamps, limits, trailing bytes; what it accepts is safe to use without
// further checks. Reused from chunk to chunk without allocating. Views point into the columns
// passed to Decode, which must outlive their use. One thread at a time.
class DecodedChunk {
 public:
  enum class Attributes : uint8_t { kSkip, kDecode };

  DecodedChunk();
  ~DecodedChunk();
  DecodedChunk(DecodedChunk&&) noexcept;
  DecodedChunk& operator=(DecodedChunk&&) noexcept;

  // `columns` uncompressed. INVALID_ARGUMENT with the place on anything wrong; the object is then
  // empty. With kSkip attribute columns are not looked into (Validate them at the door once).
  absl::Status Decode(std::string_view columns, Attributes attributes = Attributes::kDecode);

  size_t size() const;  // events
  std::span<const std::string_view> strings() const;
  std::span<const Shape> shapes() const;       // names point into the columns
  std::span<const uint16_t> shape_of() const;  // per event: index into shapes()
  std::span<const uint32_t> row_of() const;    // per event: its row among the events of its shape
  std::span<const uint64_t> timestamp_ns() const;  // per event, not decreasing
  std::span<const uint64_t> id() const;            // per event, 0 where absent; likewise below
  std::span<const uint64_t> nc_local_id() const;
  std::span<const uint64_t> tracking_id() const;
  std::span<const uint64_t> thread_id() const;
  std::span<const uint64_t> nrta_seq_id() const;
  std::span<const int64_t> worker_gid() const;

  // The column of key number `key` of a shape: one entry a row. Bits for null (0), bool, uint, int
  // and double; an index into strings() for string and JSON. Empty when decoded with kSkip.
  std::span<const uint64_t> column(uint32_t shape, uint32_t key) const;

  // Convenience for slow paths: one event by number.
  EventFields fields(size_t event) const;
  AttributeValue value(size_t event, uint32_t key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
