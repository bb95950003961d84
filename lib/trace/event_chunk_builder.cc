// SPDX-License-Identifier: Apache-2.0
// Append keeps an upper bound of the columns' size (Impl::bytes_max), to which each event, shape,
// key, value and string adds the most that it can take when it is encoded. An event that would
// exceed the limit is refused while it still can be, and Finish cannot fail. The bound is several
// times the usual size, so approximate_bytes, which decides when a chunk is closed, is a separate
// estimate.
#include "lib/trace/event_chunk_builder.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/base/status.h"
#include "lib/trace/chunk_format.h"
#include "lib/trace/chunk_limits.h"
#include "lib/trace/chunk_text.h"
#include "lib/trace/columns_writer.h"
#include "lib/trace/limits.h"
#include "lib/trace/string_table.h"

namespace neurontrace {
namespace {

using chunk_format::IsText;
using chunk_format::kBuilderBytesMax;
using chunk_format::kBuilderItemBytesMax;

// Events that the first allocation of a builder has room for; it doubles from there.
constexpr size_t kEventsInitial = 256;
constexpr uint32_t kFieldsAll = (1u << kFieldCount) - 1;

// Upper bounds of the bytes that each part takes in the columns; each integer column may begin with
// a dictionary. They are counted as events are appended, so that Append can refuse in time and
// Finish can never exceed the limit.
constexpr size_t kChunkBytes = 8192;
constexpr size_t kEventBytes = 2 + 10 * (1 + chunk_format::kFieldColumns.size());
constexpr size_t kShapeBytes = 16;
constexpr size_t kKeyBytes = 16;
constexpr size_t kValueBytes = 10;
constexpr size_t kStringLengthBytes = 3;

// Fails with INVALID_ARGUMENT, naming the event type, for a shape that no chunk may contain.
absl::Status CheckShape(const Shape& shape) {
  if (shape.keys.size() > limits::kAttributesPerEventMax) {
    return InvalidArgument("event \"{:.64}\": {} attributes exceed the limit of {}",
                           shape.event_type, shape.keys.size(), limits::kAttributesPerEventMax);
  }
  if (static_cast<uint8_t>(shape.phase) > kPhaseMax) {
    return InvalidArgument("event \"{:.64}\": unknown phase {}", shape.event_type,
                           static_cast<int>(shape.phase));
  }
  const uint32_t present = shape.present | FieldBit(Field::kTimestamp);
  if ((present & ~kFieldsAll) != 0 || (shape.quoted & ~present) != 0) {
    return InvalidArgument("event \"{:.64}\": invalid fields {:#x} with {:#x} quoted",
                           shape.event_type, present, shape.quoted);
  }
  size_t bytes = shape.event_type.size() + kStringLengthBytes + kShapeBytes;
  size_t longest = shape.event_type.size();
  for (const ShapeKey& key : shape.keys) {
    if (static_cast<uint8_t>(key.type) > kValueTypeMax ||
        static_cast<uint8_t>(key.scope) > static_cast<uint8_t>(KeyScope::kTop)) {
      return InvalidArgument("event \"{:.64}\": key \"{:.64}\" has no known type or scope",
                             shape.event_type, key.name);
    }
    bytes += key.name.size() + kStringLengthBytes + kKeyBytes;
    longest = std::max(longest, key.name.size());
  }
  if (longest > limits::kStringBytesMax || bytes > kBuilderItemBytesMax) {
    return InvalidArgument("event \"{:.64}\": names of {} bytes (the longest {}) are too long",
                           shape.event_type, bytes, longest);
  }
  return absl::OkStatus();
}

}  // namespace

// Texts that were interned for a refused event or shape stay in the table: removing them would need
// a second pass, and their bytes are counted.
struct EventChunkBuilder::Impl {
  StringTable strings;
  ChunkRows rows;
  absl::flat_hash_map<uint64_t, ShapeId> shape_by_hash;
  std::vector<uint32_t> last_text;  // per key of `rows`: the text of its last row
  std::vector<uint32_t> candidate;
  size_t bytes_max = kChunkBytes;  // upper bound of the bytes that Finish returns
  size_t name_bytes = 0;           // of all shapes, as lib/trace/chunk_limits.h counts them
  size_t text_bytes = 0;           // of all events, also
  uint32_t capacity = 0;           // events that the vectors of `rows` have room for

  // Empties the builder for the next chunk. `capacity` and most memory stay.
  void Reset() {
    strings.Clear();
    rows.Clear();
    shape_by_hash.clear();
    last_text.clear();
    bytes_max = kChunkBytes;
    name_bytes = text_bytes = 0;
  }
  bool Reserve(size_t bytes);
  bool InternText(std::string_view text, uint32_t& number);
  bool InternNames(const Shape& shape);
  uint64_t HashCandidate(const Shape& shape) const;
  ShapeId FindShape(const Shape& shape, uint64_t hash) const;
  ShapeId AddShape(const Shape& shape, uint64_t hash);
  bool AppendTexts(const ChunkShape& shape, std::span<const AttributeValue> values);
  void Grow();
};

// Counts bytes against the bound. Returns false, counting nothing, if they are too many.
bool EventChunkBuilder::Impl::Reserve(size_t bytes) {
  assert(bytes_max <= kBuilderBytesMax);
  if (bytes_max + bytes > kBuilderBytesMax) return false;
  bytes_max += bytes;
  return true;
}

// Returns false if the chunk has no room for the text.
bool EventChunkBuilder::Impl::InternText(std::string_view text, uint32_t& number) {
  const uint32_t before = strings.size();
  assert(bytes_max <= kBuilderBytesMax);
  const size_t room = kBuilderBytesMax - bytes_max;
  number = strings.Intern(text, room < kStringLengthBytes ? 0 : room - kStringLengthBytes);
  if (number == StringTable::kFull) return false;
  if (strings.size() != before) bytes_max += text.size() + kStringLengthBytes;
  return true;
}

// Stores the numbers of type and keys in `candidate`. Returns false if the chunk has no room for
// them.
bool EventChunkBuilder::Impl::InternNames(const Shape& shape) {
  candidate.resize(1 + shape.keys.size());
  if (!InternText(shape.event_type, candidate[0])) return false;
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    if (!InternText(shape.keys[i].name, candidate[1 + i])) return false;
  }
  return true;
}

// Over numbers of strings, which are equal exactly if the strings are; the texts were hashed by the
// string table.
uint64_t EventChunkBuilder::Impl::HashCandidate(const Shape& shape) const {
  uint64_t hash = shape.keys.size() << 32 | static_cast<uint64_t>(shape.phase) << 16 |
                  shape.present << 8 | shape.quoted;
  for (size_t i = 0; i < candidate.size(); ++i) {
    const uint64_t key =
        i == 0 ? 0 : chunk_format::PackKey(shape.keys[i - 1].type, shape.keys[i - 1].scope);
    hash = (hash ^ (uint64_t{candidate[i]} << 8 | key)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

// Returns the shape that equals `shape`, whose names are in `candidate`, or kNoShape.
EventChunkBuilder::ShapeId EventChunkBuilder::Impl::FindShape(const Shape& shape,
                                                              uint64_t hash) const {
  const auto found = shape_by_hash.find(hash);
  ShapeId id = found == shape_by_hash.end() ? kNoShape : found->second;
  for (; id != kNoShape; id = rows.shapes[id].next_same_hash) {
    assert(id < rows.shapes.size());
    const ChunkShape& known = rows.shapes[id];
    if (known.event_type != candidate[0] || known.phase != shape.phase ||
        known.present != (shape.present | FieldBit(Field::kTimestamp)) ||
        known.quoted != shape.quoted || known.key_count != shape.keys.size()) {
      continue;
    }
    const auto same = [&](size_t i) {
      const ChunkKey& key = rows.keys[known.first_key + i];
      return key.name == candidate[1 + i] && key.type == shape.keys[i].type &&
             key.scope == shape.keys[i].scope;
    };
    size_t i = 0;
    while (i < shape.keys.size() && same(i)) ++i;
    if (i == shape.keys.size()) return id;
  }
  return kNoShape;
}

// Adds a shape that FindShape has not found. The caller has checked the limits and reserved the
// bytes.
EventChunkBuilder::ShapeId EventChunkBuilder::Impl::AddShape(const Shape& shape, uint64_t hash) {
  const auto id = static_cast<ShapeId>(rows.shapes.size());
  assert(id < limits::kChunkShapesMax && candidate.size() == 1 + shape.keys.size());
  assert(last_text.size() == rows.keys.size());
  ChunkShape added;
  added.event_type = candidate[0];
  added.phase = shape.phase;
  added.present = static_cast<uint8_t>(shape.present | FieldBit(Field::kTimestamp));
  added.quoted = static_cast<uint8_t>(shape.quoted);
  added.first_key = static_cast<uint32_t>(rows.keys.size());
  added.key_count = static_cast<uint32_t>(shape.keys.size());
  added.name_bytes = static_cast<uint32_t>(NameBytes(shape));
  name_bytes += added.name_bytes;
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ValueType type = shape.keys[i].type;
    rows.keys.push_back({candidate[1 + i], type, shape.keys[i].scope});
    last_text.push_back(StringTable::kFull);
    added.plain = added.plain && !IsText(type) && type != ValueType::kDouble;
  }
  // Shapes of equal hash form a chain, newest first, so that a collision costs time and never
  // correctness.
  const auto [slot, inserted] = shape_by_hash.try_emplace(hash, id);
  if (!inserted) added.next_same_hash = std::exchange(slot->second, id);
  rows.shapes.push_back(added);
  return id;
}

// Makes room for more events. Requires less than limits::kChunkEventsMax of them.
void EventChunkBuilder::Impl::Grow() {
  capacity =
      std::min<uint32_t>(std::max<uint32_t>(kEventsInitial, capacity * 2), limits::kChunkEventsMax);
  rows.Reserve(capacity);
  assert(rows.count < capacity);
}

// Appends the values of a shape that has text or doubles. Returns false if the chunk has no room.
bool EventChunkBuilder::Impl::AppendTexts(const ChunkShape& shape,
                                          std::span<const AttributeValue> values) {
  assert(values.size() == shape.key_count);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!IsText(rows.keys[shape.first_key + i].type)) {
      rows.values.push_back(values[i].bits);
      continue;
    }
    // Most attributes repeat, such as a model's name or a type of memory: comparing with the last
    // text avoids hashing.
    uint32_t& number = last_text[shape.first_key + i];
    if (number == StringTable::kFull || strings[number] != values[i].text) {
      if (!InternText(values[i].text, number)) {
        // The text of the failed row must not be taken for that of the last row.
        number = StringTable::kFull;
        return false;
      }
    }
    rows.values.push_back(number);
  }
  return true;
}

EventChunkBuilder::EventChunkBuilder() : impl_(std::make_unique<Impl>()) {}
EventChunkBuilder::~EventChunkBuilder() = default;
EventChunkBuilder::EventChunkBuilder(EventChunkBuilder&&) noexcept = default;
EventChunkBuilder& EventChunkBuilder::operator=(EventChunkBuilder&&) noexcept = default;

absl::StatusOr<EventChunkBuilder::ShapeId> EventChunkBuilder::InternShape(const Shape& shape) {
  RETURN_IF_ERROR(CheckShape(shape));
  Impl& impl = *impl_;
  const size_t bytes = kShapeBytes + kKeyBytes * shape.keys.size();
  if (!impl.Reserve(bytes)) return ResourceExhausted("chunk: no room for another shape");
  if (!impl.InternNames(shape)) {
    assert(impl.bytes_max >= kChunkBytes + bytes);
    impl.bytes_max -= bytes;
    return ResourceExhausted("chunk: no room for the names of another shape");
  }
  const uint64_t hash = impl.HashCandidate(shape);
  // Bytes were reserved before it was known whether the shape is new, and are given back if it is
  // not.
  const ShapeId known = impl.FindShape(shape, hash);
  if (known == kNoShape && impl.rows.shapes.size() < limits::kChunkShapesMax &&
      impl.name_bytes + NameBytes(shape) <= limits::kChunkNameBytesMax) {
    return impl.AddShape(shape, hash);
  }
  impl.bytes_max -= bytes;
  if (known != kNoShape) return known;
  return ResourceExhausted("chunk: no room for more than {} shapes", impl.rows.shapes.size());
}

absl::Status EventChunkBuilder::Append(ShapeId shape, const EventFields& fields,
                                       std::span<const AttributeValue> values) {
  Impl& impl = *impl_;
  ChunkRows& rows = impl.rows;
  if (shape >= rows.shapes.size() || values.size() != rows.shapes[shape].key_count) {
    return InvalidArgument("event of shape {} with {} values: no such shape in this chunk", shape,
                           values.size());
  }
  const ChunkShape& at = rows.shapes[shape];
  size_t text_bytes = at.name_bytes;
  if (!at.plain) {
    ASSIGN_OR_RETURN(const size_t value_bytes, CheckValues(rows, at, values));
    text_bytes += value_bytes;
  }
  const size_t bytes = kEventBytes + kValueBytes * values.size();
  if (rows.count == limits::kChunkEventsMax ||
      impl.text_bytes + text_bytes > limits::kChunkTextBytesMax || !impl.Reserve(bytes)) {
    return ResourceExhausted("chunk: full with {} events", rows.count);
  }
  // From here on only the texts can still be refused.
  const size_t values_before = rows.values.size();
  if (at.plain) {
    for (const AttributeValue& value : values) rows.values.push_back(value.bits);
    // A refused event leaves no values behind.
  } else if (!impl.AppendTexts(at, values)) {
    rows.values.resize(values_before);
    assert(impl.bytes_max >= kChunkBytes + bytes);
    impl.bytes_max -= bytes;
    return ResourceExhausted("chunk: no room for more strings after {} events", rows.count);
  }
  impl.text_bytes += text_bytes;
  if (rows.count == impl.capacity) impl.Grow();
  rows.Put(static_cast<uint16_t>(shape), fields, static_cast<uint32_t>(values_before));
  return absl::OkStatus();
}

uint32_t EventChunkBuilder::event_count() const { return impl_->rows.count; }

size_t EventChunkBuilder::approximate_bytes() const {
  const Impl& impl = *impl_;
  return impl.strings.bytes().size() + impl.strings.size() + 10 * size_t{impl.rows.count} +
         2 * impl.rows.values.size() + 4 * impl.rows.keys.size();
}

EncodedColumns EventChunkBuilder::Finish() {
  assert(impl_ != nullptr);  // not moved from
  // One for all builders of a thread: its working memory of some 200 KiB stays in the processor's
  // cache, and does not exist once for each of hundreds of streams.
  static thread_local ColumnsWriter writer;
  EncodedColumns encoded = writer.Write(impl_->strings, impl_->rows);
  assert(encoded.event_count == impl_->rows.count);
  assert(encoded.bytes.size() <= impl_->bytes_max);
  impl_->Reset();
  return encoded;
}

}  // namespace neurontrace
