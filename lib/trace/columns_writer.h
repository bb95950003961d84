// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/event.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/integer_column.h"
#include "lib/trace/string_table.h"
#include "lib/trace/timestamp_order.h"

// The second half of EventChunkBuilder: what it collected, and how that becomes columns.
namespace neurontrace {

// A key of a shape. Names are indexes of a StringTable.
struct ChunkKey {
  uint32_t name = 0;
  ValueType type = ValueType::kNull;
  KeyScope scope = KeyScope::kData;
};

// A shape as EventChunkBuilder collects it, with the chain of its hash bucket.
struct ChunkShape {
  uint32_t event_type = 0;
  Phase phase = Phase::kOther;
  uint8_t present = 0;
  uint8_t quoted = 0;
  bool plain = true;  // neither text nor doubles: values need neither checks nor interning
  uint32_t first_key = 0;
  uint32_t key_count = 0;
  uint32_t name_bytes = 0;  // of its event type and keys
  uint32_t next_same_hash = EventChunkBuilder::kNoShape;
};

// Appended events: standard fields in columns, attribute values row by row.
struct ChunkRows {
  std::vector<ChunkShape> shapes;
  std::vector<ChunkKey> keys;
  uint32_t count = 0;
  std::vector<uint16_t> shape_of;
  std::vector<uint64_t> timestamps;
  std::array<std::vector<uint64_t>, 6> fields;  // as chunk_format::kFieldColumns
  std::vector<uint32_t> values_at;              // per event: its first entry in `values`
  std::vector<uint64_t> values;                 // bits, or the number of a string

  // Makes room for `events` events.
  void Reserve(uint32_t events);
  // Adds an event. The caller has made room for it.
  void Put(uint16_t shape, const EventFields& event, uint32_t first_value);
  void Clear();
};

// Returns the bytes of the texts among `values`. Fails with INVALID_ARGUMENT for a value that no
// chunk may contain.
absl::StatusOr<size_t> CheckValues(const ChunkRows& rows, const ChunkShape& shape,
                                   std::span<const AttributeValue> values);

// Encodes rows as columns: the second half of EventChunkBuilder. Keeps its memory, and nothing
// else, from chunk to chunk. One thread at a time.
class ColumnsWriter {
 public:
  // Returns the columns of all rows, sorted by timestamp; no rows give no bytes. The rows are not
  // changed.
  EncodedColumns Write(const StringTable& strings, const ChunkRows& rows);

 private:
  // Appends a number that is not in a column.
  void PutVarint(uint64_t value);
  // Appends the bytes of bytes_ up to `end`, preceded by their length.
  void PutColumn(const uint8_t* end);
  void PutIntegers(std::span<const uint64_t> values, IntegerEncoding encoding);
  // Append the parts of the format in its order. They use order_, and from PutField on shape_of_.
  void PutStrings(const StringTable& strings);
  void PutShapes(const ChunkRows& rows);
  void PutShapeOf(const ChunkRows& rows);
  void PutField(const ChunkRows& rows, size_t column);
  void GroupByShape(const ChunkRows& rows);
  void PutAttributes(const ChunkRows& rows);
  void PutAttribute(ValueType type, std::span<const uint32_t> values_at, uint32_t key,
                    const std::vector<uint64_t>& values);
  // Returns bytes_ with room for `bytes`.
  uint8_t* Room(size_t bytes);

  std::string out_;
  TimestampOrder sorter_;
  std::span<const uint32_t> order_;   // empty: as appended
  std::vector<uint8_t> bytes_;        // the column at hand
  std::vector<uint64_t> column_;      // its values
  std::vector<uint16_t> shape_of_;    // in order
  std::vector<uint32_t> shape_ends_;  // per shape: end of its rows in rows_
  std::vector<uint32_t> values_at_;   // events' first values, grouped by shape
};

}  // namespace neurontrace
