// SPDX-License-Identifier: Apache-2.0
// Decoding checks everything while it reads, so that no reader has to: counts against the limits
// before memory is allocated for them, lengths against the bytes that are left, indexes against the
// size of their table. The steps follow the layout of docs/formats/chunk.md from front to back.
// chunk_decode_fuzzer.cc passes arbitrary bytes through it.
#include "lib/trace/decoded_chunk.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

#include "lib/base/status.h"
#include "lib/trace/chunk_format.h"
#include "lib/trace/chunk_text.h"
#include "lib/trace/integer_column.h"
#include "lib/trace/limits.h"
#include "lib/trace/varint.h"

namespace neurontrace {
namespace {

using chunk_format::IsText;
using chunk_format::kFieldColumns;

// For messages, in the order of kFieldColumns.
constexpr std::array<std::string_view, kFieldColumns.size()> kFieldNames = {
    "id", "nc_local_id", "tracking_id", "thread_id", "nrta_seq_id", "worker_gid"};

// Returns the bytes in the type that readers of varints take.
const uint8_t* Begin(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

// Vectors grow and never shrink, so that a reader allocates nothing for most chunks. The number of
// valid entries is kept apart from the vectors' sizes.
template <typename T>
void AtLeast(std::vector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(size);
}

}  // namespace

// Vectors may be longer than their contents, see AtLeast: `count`, `string_count` and `shape_count`
// are the numbers of valid entries.
struct DecodedChunk::Impl {
  size_t count = 0;
  size_t string_count = 0;
  size_t shape_count = 0;
  std::vector<std::string_view> strings;
  std::vector<Shape> shapes;
  std::vector<uint32_t> rows;       // per shape
  std::vector<uint32_t> first_key;  // per shape: its first entry in key_columns
  std::vector<const uint64_t*> key_columns;
  std::vector<uint16_t> shape_of;
  std::vector<uint32_t> row_of;
  std::vector<uint64_t> timestamps;
  std::array<std::vector<uint64_t>, kFieldColumns.size()> fields;
  std::vector<uint64_t> scratch;
  std::vector<uint64_t> zeros;   // the column of every null key
  std::vector<uint64_t> values;  // all other attribute columns, one after the other
  std::string_view rest;         // of the columns that are being decoded

  void Clear() { count = string_count = shape_count = 0; }
  absl::Status Decode(std::string_view columns, Attributes attributes);
  bool ConsumeVarint(uint64_t& value);
  bool ReadColumn(std::string_view& column);
  absl::Status ReadCounts();
  absl::Status ReadStrings();
  absl::Status ReadShapes();
  const uint8_t* ReadShape(const uint8_t* in, const uint8_t* end, Shape& shape);
  absl::Status ReadShapeOf();
  absl::Status ReadTimestamps();
  absl::Status ReadField(size_t column);
  absl::Status ReadAttributes(Attributes attributes);
  ColumnError ReadAttribute(std::string_view bytes, ValueType type, std::span<uint64_t> out);
};

// Take the next number or column off `rest`. They return false if it is incomplete.
bool DecodedChunk::Impl::ConsumeVarint(uint64_t& value) {
  const uint8_t* const after = ReadVarint(Begin(rest), Begin(rest) + rest.size(), value);
  if (after == nullptr) return false;
  assert(after <= Begin(rest) + rest.size());
  rest.remove_prefix(after - Begin(rest));
  return true;
}

bool DecodedChunk::Impl::ReadColumn(std::string_view& column) {
  uint64_t size = 0;
  if (!ConsumeVarint(size) || size > rest.size()) return false;
  column = rest.substr(0, size);
  rest.remove_prefix(size);
  return true;
}

// Each of the following steps fails with INVALID_ARGUMENT for anything that the format does not
// allow, and leaves the object to be cleared by the caller.
absl::Status DecodedChunk::Impl::ReadCounts() {
  assert(!rest.empty());
  const auto version = static_cast<uint8_t>(rest.front());
  if (version != chunk_format::kVersion) {
    return InvalidArgument("columns: format version {} is unsupported; this program reads {}",
                           version, chunk_format::kVersion);
  }
  rest.remove_prefix(1);
  uint64_t event_count = 0, strings_count = 0, shapes_count = 0;
  if (!ConsumeVarint(event_count) || !ConsumeVarint(strings_count) ||
      !ConsumeVarint(shapes_count)) {
    return InvalidArgument("columns: truncated inside the counts");
  }
  if (event_count == 0 || event_count > limits::kChunkEventsMax ||
      strings_count > limits::kChunkStringsMax || shapes_count == 0 ||
      shapes_count > limits::kChunkShapesMax) {
    return InvalidArgument("columns: {} events, {} strings and {} shapes are outside the limits",
                           event_count, strings_count, shapes_count);
  }
  count = event_count;
  string_count = strings_count;
  shape_count = shapes_count;
  return absl::OkStatus();
}

absl::Status DecodedChunk::Impl::ReadStrings() {
  std::string_view lengths, bytes;
  if (!ReadColumn(lengths) || !ReadColumn(bytes)) {
    return InvalidArgument("columns: truncated inside the strings");
  }
  AtLeast(strings, string_count);
  const uint8_t* in = Begin(lengths);
  const uint8_t* const end = in + lengths.size();
  for (size_t i = 0; i < string_count; ++i) {
    uint64_t length = 0;
    in = ReadVarint(in, end, length);
    if (in == nullptr || length > limits::kStringBytesMax || length > bytes.size()) {
      return InvalidArgument("columns: string {} has an invalid length", i);
    }
    strings[i] = bytes.substr(0, length);
    bytes.remove_prefix(length);
  }
  if (in != end || !bytes.empty()) {
    return InvalidArgument("columns: extra bytes follow the last of {} strings", string_count);
  }
  return absl::OkStatus();
}

// Returns the position after the shape, or nullptr if anything is wrong with it.
const uint8_t* DecodedChunk::Impl::ReadShape(const uint8_t* in, const uint8_t* end, Shape& shape) {
  uint64_t type = 0, keys = 0;
  in = ReadVarint(in, end, type);
  // Phase and the two sets of fields take three bytes.
  if (in == nullptr || type >= string_count || end - in < 3) return nullptr;
  shape.event_type = strings[type];
  shape.phase = static_cast<Phase>(in[0]);
  shape.present = in[1];
  shape.quoted = in[2];
  if (in[0] > kPhaseMax || (shape.present & FieldBit(Field::kTimestamp)) == 0 ||
      // A timestamp is required, and only present fields can be quoted.
      (shape.quoted & ~shape.present) != 0) {
    return nullptr;
  }
  in = ReadVarint(in + 3, end, keys);
  if (in == nullptr || keys > limits::kAttributesPerEventMax) return nullptr;
  shape.keys.resize(keys);
  for (ShapeKey& key : shape.keys) {
    uint64_t name = 0;
    in = ReadVarint(in, end, name);
    if (in == nullptr || in == end || name >= string_count) return nullptr;
    const uint8_t packed = *in++;
    if ((packed & 0x0f) > kValueTypeMax || packed >> 4 > static_cast<uint8_t>(KeyScope::kTop)) {
      return nullptr;
    }
    key = {strings[name], static_cast<ValueType>(packed & 0x0f),
           static_cast<KeyScope>(packed >> 4)};
  }
  return in;
}

absl::Status DecodedChunk::Impl::ReadShapes() {
  std::string_view bytes;
  if (!ReadColumn(bytes)) return InvalidArgument("columns: truncated inside the shapes");
  AtLeast(shapes, shape_count);
  AtLeast(first_key, shape_count);
  const uint8_t* in = Begin(bytes);
  const uint8_t* const end = in + bytes.size();
  uint32_t keys = 0;
  for (size_t i = 0; i < shape_count; ++i) {
    in = ReadShape(in, end, shapes[i]);
    if (in == nullptr) {
      return InvalidArgument("columns: shape {} of {} is malformed", i, shape_count);
    }
    first_key[i] = keys;
    keys += static_cast<uint32_t>(shapes[i].keys.size());
  }
  if (in != end) return InvalidArgument("columns: extra bytes follow the last shape");
  AtLeast(key_columns, keys);
  return absl::OkStatus();
}

absl::Status DecodedChunk::Impl::ReadShapeOf() {
  std::string_view bytes;
  const size_t width = shape_count <= chunk_format::kByteShapesMax ? 1 : 2;
  if (!ReadColumn(bytes) || bytes.size() != count * width) {
    return InvalidArgument("columns: the shapes of {} events do not have {} bytes each", count,
                           width);
  }
  AtLeast(shape_of, count);
  AtLeast(row_of, count);
  if (width == 1) {
    std::copy_n(Begin(bytes), count, shape_of.begin());
  } else {
    memcpy(shape_of.data(), bytes.data(), bytes.size());
  }
  const uint16_t highest = *std::max_element(shape_of.begin(), shape_of.begin() + count);
  if (highest >= shape_count) {
    return InvalidArgument("columns: an event has shape {}, but there are only {} shapes", highest,
                           shape_count);
  }
  // The row of an event among the events of its shape is its index in the attribute columns.
  rows.assign(shape_count, 0);
  for (size_t i = 0; i < count; ++i) row_of[i] = rows[shape_of[i]]++;
  return absl::OkStatus();
}

absl::Status DecodedChunk::Impl::ReadTimestamps() {
  std::string_view bytes;
  if (!ReadColumn(bytes)) return InvalidArgument("columns: truncated inside the timestamps");
  AtLeast(timestamps, count);
  const std::span<uint64_t> out = std::span(timestamps).first(count);
  if (const ColumnError error = DecodeIntegers(bytes, out); error != ColumnError::kNone) {
    return InvalidArgument("columns: the column of timestamps {}", ToString(error));
  }
  // Merging of streams relies on sorted chunks.
  if (!std::is_sorted(out.begin(), out.end())) {
    return InvalidArgument("columns: timestamps run backwards");
  }
  return absl::OkStatus();
}

absl::Status DecodedChunk::Impl::ReadField(size_t column) {
  assert(column < kFieldColumns.size());
  const uint32_t bit = FieldBit(kFieldColumns[column]);
  std::string_view bytes;
  if (!ReadColumn(bytes)) {
    return InvalidArgument("columns: truncated inside the column of {}", kFieldNames[column]);
  }
  size_t present = 0;
  for (size_t s = 0; s < shape_count; ++s) present += shapes[s].present & bit ? rows[s] : 0;
  AtLeast(fields[column], count);
  const std::span<uint64_t> out = std::span(fields[column]).first(count);
  // Absent fields have no entry in the column; readers get a 0 there, so that all columns have one
  // entry for each event.
  const bool dense = present == count;
  AtLeast(scratch, present);
  const std::span<uint64_t> read = dense ? out : std::span(scratch).first(present);
  if (const ColumnError error = DecodeIntegers(bytes, read); error != ColumnError::kNone) {
    return InvalidArgument("columns: the column of {} {}", kFieldNames[column], ToString(error));
  }
  if (present == 0) {
    std::fill(out.begin(), out.end(), 0);
  } else if (!dense) {
    size_t at = 0;
    for (size_t i = 0; i < count; ++i) {
      out[i] = shapes[shape_of[i]].present & bit ? scratch[at++] : 0;
    }
    assert(at == present);
  }
  return absl::OkStatus();
}

// Decodes one attribute column of any type but kNull.
ColumnError DecodedChunk::Impl::ReadAttribute(std::string_view bytes, ValueType type,
                                              std::span<uint64_t> out) {
  if (type == ValueType::kBool) {
    if (bytes.size() < (out.size() + 7) / 8) return ColumnError::kTruncated;
    if (bytes.size() > (out.size() + 7) / 8) return ColumnError::kTrailing;
    for (size_t i = 0; i < out.size(); ++i) out[i] = Begin(bytes)[i / 8] >> (i % 8) & 1;
    // Unused bits must be zero, so that equal events have equal bytes.
    const bool spare_bits = out.size() % 8 != 0 && Begin(bytes)[out.size() / 8] >> (out.size() % 8);
    return spare_bits ? ColumnError::kTrailing : ColumnError::kNone;
  }
  if (type == ValueType::kDouble) {
    if (bytes.size() < out.size() * 8) return ColumnError::kTruncated;
    if (bytes.size() > out.size() * 8) return ColumnError::kTrailing;
    if (!bytes.empty()) memcpy(out.data(), bytes.data(), bytes.size());
    const bool finite = std::all_of(out.begin(), out.end(), chunk_format::IsFinite);
    return finite ? ColumnError::kNone : ColumnError::kNotFinite;
  }
  const ColumnError error = DecodeIntegers(bytes, out);
  if (error != ColumnError::kNone || !IsText(type) || out.empty()) return error;
  // Checked once here so that no reader has to.
  return *std::max_element(out.begin(), out.end()) < string_count ? ColumnError::kNone
                                                                  : ColumnError::kIndex;
}

// With kSkip no column is decoded, and column() returns an empty span for all of them.
absl::Status DecodedChunk::Impl::ReadAttributes(Attributes attributes) {
  const bool decode = attributes == Attributes::kDecode;
  if (decode) {
    size_t total = 0;
    for (size_t s = 0; s < shape_count; ++s) total += shapes[s].keys.size() * rows[s];
    AtLeast(values, total);
    AtLeast(zeros, count);
  }
  // All columns share one buffer, sized before, as pointers into it are stored.
  uint64_t* at = values.data();
  for (size_t s = 0; s < shape_count; ++s) {
    for (size_t k = 0; k < shapes[s].keys.size(); ++k) {
      const ShapeKey& key = shapes[s].keys[k];
      const uint64_t*& column = key_columns[first_key[s] + k];
      column = decode ? zeros.data() : nullptr;
      if (key.type == ValueType::kNull) continue;
      std::string_view bytes;
      if (!ReadColumn(bytes)) {
        return InvalidArgument("columns: truncated inside key {} of shape {}", k, s);
      }
      if (!decode) continue;
      const ColumnError error = ReadAttribute(bytes, key.type, std::span(at, rows[s]));
      if (error != ColumnError::kNone) {
        return InvalidArgument("columns: the column of key {} of shape {} {}", k, s,
                               ToString(error));
      }
      column = at;
      at += rows[s];
      assert(at <= values.data() + values.size());
    }
  }
  return absl::OkStatus();
}

// Each step relies on the counts and tables that the steps before it have checked.
absl::Status DecodedChunk::Impl::Decode(std::string_view columns, Attributes attributes) {
  if (columns.empty()) return absl::OkStatus();
  if (columns.size() > limits::kChunkColumnsBytesMax) {
    return InvalidArgument("columns: {} bytes exceed the limit of {}", columns.size(),
                           limits::kChunkColumnsBytesMax);
  }
  rest = columns;
  RETURN_IF_ERROR(ReadCounts());
  RETURN_IF_ERROR(ReadStrings());
  RETURN_IF_ERROR(ReadShapes());
  RETURN_IF_ERROR(ReadShapeOf());
  RETURN_IF_ERROR(ReadTimestamps());
  for (size_t column = 0; column < kFieldColumns.size(); ++column) {
    RETURN_IF_ERROR(ReadField(column));
  }
  RETURN_IF_ERROR(ReadAttributes(attributes));
  if (!rest.empty())
    return InvalidArgument("columns: {} unexpected bytes after the last column", rest.size());
  return absl::OkStatus();
}

DecodedChunk::DecodedChunk() : impl_(std::make_unique<Impl>()) {}
DecodedChunk::~DecodedChunk() = default;
DecodedChunk::DecodedChunk(DecodedChunk&&) noexcept = default;
DecodedChunk& DecodedChunk::operator=(DecodedChunk&&) noexcept = default;

absl::Status DecodedChunk::Decode(std::string_view columns, Attributes attributes) {
  assert(impl_ != nullptr);  // not moved from
  impl_->Clear();
  absl::Status status = impl_->Decode(columns, attributes);
  // The columns must be decoded for it: texts are counted by their use.
  if (status.ok() && attributes == Attributes::kDecode) status = CheckChunkText(*this);
  if (!status.ok()) impl_->Clear();
  return status;
}

size_t DecodedChunk::size() const { return impl_->count; }
std::span<const std::string_view> DecodedChunk::strings() const {
  return {impl_->strings.data(), impl_->string_count};
}
std::span<const Shape> DecodedChunk::shapes() const {
  return {impl_->shapes.data(), impl_->shape_count};
}
std::span<const uint16_t> DecodedChunk::shape_of() const {
  return {impl_->shape_of.data(), impl_->count};
}
std::span<const uint32_t> DecodedChunk::row_of() const {
  return {impl_->row_of.data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::timestamp_ns() const {
  return {impl_->timestamps.data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::id() const {
  return {impl_->fields[0].data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::nc_local_id() const {
  return {impl_->fields[1].data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::tracking_id() const {
  return {impl_->fields[2].data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::thread_id() const {
  return {impl_->fields[3].data(), impl_->count};
}
std::span<const uint64_t> DecodedChunk::nrta_seq_id() const {
  return {impl_->fields[4].data(), impl_->count};
}
std::span<const int64_t> DecodedChunk::worker_gid() const {
  // The signed counterpart of the element type: the one conversion that aliasing rules allow.
  return {reinterpret_cast<const int64_t*>(impl_->fields[5].data()), impl_->count};
}

// A null pointer marks a column that was skipped; a null key has a column of zeros.
std::span<const uint64_t> DecodedChunk::column(uint32_t shape, uint32_t key) const {
  assert(shape < impl_->shape_count && key < impl_->shapes[shape].keys.size());
  const uint64_t* const column = impl_->key_columns[impl_->first_key[shape] + key];
  if (column == nullptr) return {};
  return {column, impl_->rows[shape]};
}

EventFields DecodedChunk::fields(size_t event) const {
  assert(event < impl_->count);
  const auto& fields = impl_->fields;
  return {impl_->timestamps[event],
          fields[0][event],
          fields[1][event],
          fields[2][event],
          fields[3][event],
          fields[4][event],
          static_cast<int64_t>(fields[5][event])};
}

AttributeValue DecodedChunk::value(size_t event, uint32_t key) const {
  assert(event < impl_->count);
  const uint16_t shape = impl_->shape_of[event];
  assert(impl_->row_of[event] < column(shape, key).size());  // decoded with its attributes
  const uint64_t bits = column(shape, key)[impl_->row_of[event]];
  assert(!IsText(impl_->shapes[shape].keys[key].type) || bits < impl_->string_count);
  if (IsText(impl_->shapes[shape].keys[key].type)) return {0, impl_->strings[bits]};
  return {bits, {}};
}

}  // namespace neurontrace
