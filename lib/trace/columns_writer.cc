// SPDX-License-Identifier: Apache-2.0
// Writing takes three steps. The events are sorted by timestamp as a list of positions, and the
// rows stay in place. Each standard field is gathered in that order and encoded. Attribute values
// are grouped by shape first, as each key of a shape has a column of its own.
//
// Every column is encoded into a buffer that is as large as the column can get, so that the loops
// over values need no checks, and is then appended with its length. All loops are linear in the
// number of values, except for the fallback of TimestampOrder. event_chunk_test.cc reads the
// columns back with DecodedChunk.
#include "lib/trace/columns_writer.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <numeric>

#include "lib/base/status.h"
#include "lib/trace/chunk_format.h"
#include "lib/trace/limits.h"
#include "lib/trace/varint.h"

namespace neurontrace {
namespace {

// A digit of 11 bits has 2,048 counters of 4 bytes, which fit the first-level cache.
constexpr int kPositionBits = std::bit_width(limits::kChunkEventsMax - 1);
constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Makes one stable pass over the digit that starts at bit `shift`.
void SortByDigit(const std::vector<uint64_t>& from, std::vector<uint64_t>& to, int shift) {
  assert(from.size() == to.size());
  std::array<uint32_t, kDigits> starts{};
  for (const uint64_t key : from) ++starts[(key >> shift) & (kDigits - 1)];
  std::exclusive_scan(starts.begin(), starts.end(), starts.begin(), 0u);
  for (const uint64_t key : from) to[starts[(key >> shift) & (kDigits - 1)]++] = key;
}

// Threads and ranks have few values in any order; numbers of events mostly rise.
IntegerEncoding EncodingOf(Field field) {
  return field == Field::kThreadId || field == Field::kWorkerGid ? IntegerEncoding::kDictionary
                                                                 : IntegerEncoding::kDelta;
}

// Copies from[order[i]] to to[i], or from[i] if `order` is empty.
template <typename Value>
void Gather(std::span<const uint32_t> order, const std::vector<Value>& from, std::span<Value> to) {
  if (order.empty()) {
    std::copy_n(from.begin(), to.size(), to.begin());
    return;
  }
  assert(order.size() == to.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] = from[order[i]];
}

}  // namespace

std::span<const uint32_t> TimestampOrder::Sort(std::span<const uint64_t> timestamps) {
  assert(timestamps.size() <= limits::kChunkEventsMax);  // a position has kPositionBits
  if (std::is_sorted(timestamps.begin(), timestamps.end())) return {};
  const auto [min, max] = std::minmax_element(timestamps.begin(), timestamps.end());
  const uint64_t base = *min;
  const int span_bits = std::bit_width(*max - base);
  order_.resize(timestamps.size());
  // More than half a month within one chunk; time and position do not fit into one key.
  if (span_bits + kPositionBits > 64) {
    std::iota(order_.begin(), order_.end(), 0u);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](uint32_t a, uint32_t b) { return timestamps[a] < timestamps[b]; });
    return order_;
  }
  // Keys have the time since the first event in the high bits and the position in the low ones. A
  // radix sort over the time alone is stable and costs three or four passes for a usual chunk.
  keys_.resize(timestamps.size());
  spare_.resize(timestamps.size());
  for (size_t i = 0; i < timestamps.size(); ++i) {
    keys_[i] = ((timestamps[i] - base) << kPositionBits) | i;
  }
  for (int shift = kPositionBits; shift < kPositionBits + span_bits; shift += kDigitBits) {
    SortByDigit(keys_, spare_, shift);
    keys_.swap(spare_);
  }
  constexpr uint64_t kPositionMask = (uint64_t{1} << kPositionBits) - 1;
  std::transform(keys_.begin(), keys_.end(), order_.begin(),
                 [](uint64_t key) { return static_cast<uint32_t>(key & kPositionMask); });
  return order_;
}

void ChunkRows::Reserve(uint32_t events) {
  shape_of.resize(events);
  timestamps.resize(events);
  for (auto& field : fields) field.resize(events);
  values_at.resize(events);
}

void ChunkRows::Put(uint16_t shape, const EventFields& event, uint32_t first_value) {
  assert(shape < shapes.size() && count < shape_of.size());
  assert(first_value + shapes[shape].key_count <= values.size());
  shape_of[count] = shape;
  timestamps[count] = event.timestamp_ns;
  fields[0][count] = event.id;
  fields[1][count] = event.nc_local_id;
  fields[2][count] = event.tracking_id;
  fields[3][count] = event.thread_id;
  fields[4][count] = event.nrta_seq_id;
  fields[5][count] = static_cast<uint64_t>(event.worker_gid);
  values_at[count] = first_value;
  ++count;
}

// Keeps memory for a usual chunk; what an unusual one needed is freed, as there are hundreds of
// streams.
void ChunkRows::Clear() {
  constexpr size_t kValuesKept = 65'536;
  shapes.clear();
  keys.clear();
  values.clear();
  if (values.capacity() > kValuesKept) values.shrink_to_fit();
  count = 0;
}

// Checked when an event is appended, not when the chunk is written: then the event could no longer
// be refused alone.
absl::StatusOr<size_t> CheckValues(const ChunkRows& rows, const ChunkShape& shape,
                                   std::span<const AttributeValue> values) {
  assert(values.size() == shape.key_count);
  assert(shape.first_key + shape.key_count <= rows.keys.size());
  size_t text_bytes = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const ValueType type = rows.keys[shape.first_key + i].type;
    if (type == ValueType::kDouble && !chunk_format::IsFinite(values[i].bits)) {
      return InvalidArgument("attribute {}: a double is not finite", i);
    }
    if (!chunk_format::IsText(type)) continue;
    text_bytes += values[i].text.size();
    if (values[i].text.size() > limits::kStringBytesMax) {
      return InvalidArgument("attribute {}: a string has {} bytes; the limit is {}", i,
                             values[i].text.size(), limits::kStringBytesMax);
    }
  }
  if (text_bytes > chunk_format::kBuilderItemBytesMax - 64 * limits::kAttributesPerEventMax) {
    return InvalidArgument("the strings of an event have {} bytes, too many for a chunk",
                           text_bytes);
  }
  return text_bytes;
}

uint8_t* ColumnsWriter::Room(size_t bytes) {
  if (bytes_.size() < bytes) bytes_.resize(bytes);
  return bytes_.data();
}

void ColumnsWriter::PutVarint(uint64_t value) {
  uint8_t bytes[kVarintBytesMax];
  out_.append(reinterpret_cast<char*>(bytes), WriteVarint(value, bytes) - bytes);
}

void ColumnsWriter::PutColumn(const uint8_t* end) {
  const size_t size = end - bytes_.data();
  assert(size <= bytes_.size());  // Room was given for it
  PutVarint(size);
  out_.append(reinterpret_cast<const char*>(bytes_.data()), size);
}

void ColumnsWriter::PutIntegers(std::span<const uint64_t> values, IntegerEncoding encoding) {
  uint8_t* const room = Room(IntegerColumnBytesMax(values.size()));
  const uint8_t* const end = EncodeIntegers(values, encoding, room);
  assert(end >= room && end <= room + IntegerColumnBytesMax(values.size()));
  PutColumn(end);
}

void ColumnsWriter::PutStrings(const StringTable& strings) {
  // A length takes at most three bytes, as kStringBytesMax is below 2^21.
  uint8_t* at = Room(size_t{strings.size()} * 3);
  for (uint32_t i = 0; i < strings.size(); ++i) at = WriteVarint(strings[i].size(), at);
  PutColumn(at);
  PutVarint(strings.bytes().size());
  out_.append(strings.bytes());
}

// A shape's event type and names of keys are numbers of strings, which PutStrings has written.
void ColumnsWriter::PutShapes(const ChunkRows& rows) {
  assert(rows.shapes.size() <= limits::kChunkShapesMax);
  // Upper bounds: two varints of five bytes and three bytes for a shape; one varint and a byte for
  // a key.
  uint8_t* at = Room(rows.shapes.size() * 16 + rows.keys.size() * 8);
  for (const ChunkShape& shape : rows.shapes) {
    at = WriteVarint(shape.event_type, at);
    assert(shape.first_key + shape.key_count <= rows.keys.size());
    *at++ = static_cast<uint8_t>(shape.phase);
    *at++ = shape.present;
    *at++ = shape.quoted;
    at = WriteVarint(shape.key_count, at);
    for (uint32_t k = shape.first_key; k < shape.first_key + shape.key_count; ++k) {
      at = WriteVarint(rows.keys[k].name, at);
      *at++ = chunk_format::PackKey(rows.keys[k].type, rows.keys[k].scope);
    }
  }
  PutColumn(at);
}

// Also sets shape_of_, which the fields and attributes are written by. Two bytes are the machine's
// own representation: little endian (lib/trace/varint.h asserts it).
void ColumnsWriter::PutShapeOf(const ChunkRows& rows) {
  shape_of_.resize(rows.count);
  Gather(order_, rows.shape_of, std::span(shape_of_));
  uint8_t* at = Room(size_t{rows.count} * 2);
  if (rows.shapes.size() <= chunk_format::kByteShapesMax) {
    at = std::transform(shape_of_.begin(), shape_of_.end(), at,
                        [](uint16_t shape) { return static_cast<uint8_t>(shape); });
  } else {
    memcpy(at, shape_of_.data(), size_t{rows.count} * 2);
    at += size_t{rows.count} * 2;
  }
  PutColumn(at);
}

// The column has an entry for each event whose shape has the field, and no bytes if no event has
// it.
void ColumnsWriter::PutField(const ChunkRows& rows, size_t column) {
  assert(column < chunk_format::kFieldColumns.size() && shape_of_.size() == rows.count);
  const Field field = chunk_format::kFieldColumns[column];
  const std::vector<uint64_t>& from = rows.fields[column];
  const auto has = [field](const ChunkShape& shape) {
    return (shape.present & FieldBit(field)) != 0;
  };
  column_.resize(rows.count);
  size_t present = 0;
  if (std::any_of(rows.shapes.begin(), rows.shapes.end(), has)) {
    Gather(order_, from, std::span(column_));
    present = rows.count;
  }
  // Removes the values of events whose shape does not have the field. Without a branch, as presence
  // alternates unpredictably.
  if (!std::all_of(rows.shapes.begin(), rows.shapes.end(), has) && present != 0) {
    present = 0;
    for (size_t i = 0; i < rows.count; ++i) {
      column_[present] = column_[i];
      present += has(rows.shapes[shape_of_[i]]);
    }
  }
  PutIntegers(std::span(column_).first(present), EncodingOf(field));
}

// A counting sort by shape, so that each attribute column is a contiguous run of rows.
void ColumnsWriter::GroupByShape(const ChunkRows& rows) {
  assert(shape_of_.size() == rows.count);
  shape_ends_.assign(rows.shapes.size() + 1, 0);
  for (const uint16_t shape : shape_of_) ++shape_ends_[shape + 1];
  for (size_t s = 1; s <= rows.shapes.size(); ++s) shape_ends_[s] += shape_ends_[s - 1];
  // Each entry of shape_ends_ is the beginning of its shape's rows now, and advances to their end.
  values_at_.resize(rows.count);
  for (size_t i = 0; i < rows.count; ++i) {
    const uint32_t event = order_.empty() ? static_cast<uint32_t>(i) : order_[i];
    values_at_[shape_ends_[shape_of_[i]]++] = rows.values_at[event];
  }
  assert(shape_ends_.back() == rows.count);
}

// Booleans become bits, doubles their eight bytes, and all other values integers; a text is the
// number of its string. `values_at` has the first value of each event, and `key` is the distance of
// the attribute's value from it.
void ColumnsWriter::PutAttribute(ValueType type, std::span<const uint32_t> values_at, uint32_t key,
                                 const std::vector<uint64_t>& values) {
  const size_t count = values_at.size();
  if (type == ValueType::kBool) {
    uint8_t* const room = Room((count + 7) / 8);
    std::fill_n(room, (count + 7) / 8, uint8_t{0});
    for (size_t i = 0; i < count; ++i) {
      room[i / 8] |= static_cast<uint8_t>((values[values_at[i] + key] != 0) << (i % 8));
    }
    return PutColumn(room + (count + 7) / 8);
  }
  column_.resize(count);
  for (size_t i = 0; i < count; ++i) column_[i] = values[values_at[i] + key];
  if (type == ValueType::kDouble) {
    uint8_t* const room = Room(count * 8);
    if (count != 0) memcpy(room, column_.data(), count * 8);
    return PutColumn(room + count * 8);
  }
  PutIntegers(column_, IntegerEncoding::kDelta);
}

void ColumnsWriter::PutAttributes(const ChunkRows& rows) {
  GroupByShape(rows);
  uint32_t begin = 0;
  for (size_t s = 0; s < rows.shapes.size(); ++s) {
    const ChunkShape& shape = rows.shapes[s];
    assert(begin <= shape_ends_[s] && shape_ends_[s] <= values_at_.size());
    const auto values_at = std::span(values_at_).subspan(begin, shape_ends_[s] - begin);
    begin = shape_ends_[s];
    for (uint32_t k = 0; k < shape.key_count; ++k) {
      const ValueType type = rows.keys[shape.first_key + k].type;
      if (type != ValueType::kNull) PutAttribute(type, values_at, k, rows.values);
    }
  }
}

// The order of the columns is the format's, see docs/formats/chunk.md. shape_of_ and order_ must be
// set before the fields and attributes are written.
EncodedColumns ColumnsWriter::Write(const StringTable& strings, const ChunkRows& rows) {
  EncodedColumns encoded;
  if (rows.count == 0) return encoded;
  assert(rows.count <= limits::kChunkEventsMax && rows.count <= rows.timestamps.size());
  order_ = sorter_.Sort(std::span(rows.timestamps).first(rows.count));
  out_.clear();
  out_.push_back(static_cast<char>(chunk_format::kVersion));
  PutVarint(rows.count);
  PutVarint(strings.size());
  PutVarint(rows.shapes.size());
  PutStrings(strings);
  PutShapes(rows);
  PutShapeOf(rows);
  column_.resize(rows.count);
  Gather(order_, rows.timestamps, std::span(column_));
  assert(column_.front() <= column_.back());
  encoded.first_timestamp_ns = column_.front();
  encoded.last_timestamp_ns = column_.back();
  PutIntegers(column_, IntegerEncoding::kDeltaOfDelta);
  for (size_t column = 0; column < rows.fields.size(); ++column) PutField(rows, column);
  PutAttributes(rows);
  encoded.event_count = rows.count;
  encoded.bytes = out_;
  return encoded;
}

}  // namespace neurontrace
