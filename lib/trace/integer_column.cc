// SPDX-License-Identifier: Apache-2.0
// The encodings are those of docs/formats/chunk.md. The caller names the one that suits the column.
// The writer replaces it only if all values are equal, or if a dictionary would not pay off.
#include "lib/trace/integer_column.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "lib/trace/varint.h"

namespace neurontrace {
namespace {

// Write the values without the byte that names the encoding, and return the end of what they wrote.
// Differences are modulo 2^64, so that values may be in any order.
uint8_t* WriteDeltas(std::span<const uint64_t> values, uint8_t* out) {
  uint64_t previous = 0;
  for (const uint64_t value : values) {
    out = WriteVarint(ZigZag(value - previous), out);
    previous = value;
  }
  return out;
}

uint8_t* WriteDeltasOfDeltas(std::span<const uint64_t> values, uint8_t* out) {
  uint64_t previous = 0;
  uint64_t previous_delta = 0;
  for (const uint64_t value : values) {
    const uint64_t delta = value - previous;
    out = WriteVarint(ZigZag(delta - previous_delta), out);
    previous = value;
    previous_delta = delta;
  }
  return out;
}

// Returns nullptr if there are too many distinct values; `out` then contains garbage. Otherwise
// returns the end of the column.
uint8_t* WriteDictionary(std::span<const uint64_t> values, uint8_t* out) {
  // Few enough that a linear search from the last hit is faster than a hash table, and that the
  // dictionary pays off: an index takes one byte, a dictionary entry up to ten.
  const size_t distinct_max = std::min<size_t>(32, values.size() / 8);
  std::array<uint64_t, 32> dictionary;
  size_t distinct = 0;
  size_t hit = 0;
  // Indexes are written behind the largest possible dictionary first, as its size is not known yet,
  // and moved down to its end afterwards. IntegerColumnBytesMax includes this room.
  uint8_t* const indexes = out + values.size() + 1 + 10 * dictionary.size();
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t value = values[i];
    if (distinct == 0 || dictionary[hit] != value) {
      hit =
          std::find(dictionary.begin(), dictionary.begin() + distinct, value) - dictionary.begin();
      if (hit == distinct) {
        if (distinct == distinct_max) return nullptr;
        dictionary[distinct++] = value;
      }
    }
    assert(hit < distinct && distinct <= distinct_max);
    indexes[i] = static_cast<uint8_t>(hit);
  }
  out = WriteVarint(distinct, out);
  out = WriteDeltas(std::span(dictionary).first(distinct), out);
  return std::copy_n(indexes, values.size(), out);
}

// The values must fill the column exactly: bytes behind them would be content that no reader sees.
ColumnError FinishedAt(const uint8_t* at, const uint8_t* end) {
  if (at == nullptr) return ColumnError::kTruncated;
  return at == end ? ColumnError::kNone : ColumnError::kTrailing;
}

// Read as many values as `out` has room for. Return the position after them, or nullptr as
// ReadVarint does.
const uint8_t* ReadDeltas(const uint8_t* in, const uint8_t* end, std::span<uint64_t> out) {
  uint64_t value = 0;
  uint64_t* to = out.data();
  return ReadVarints(in, end, out.size(), [&value, &to](uint64_t zigzag) {
    value += UnZigZag(zigzag);
    *to++ = value;
  });
}

const uint8_t* ReadDeltasOfDeltas(const uint8_t* in, const uint8_t* end, std::span<uint64_t> out) {
  uint64_t value = 0;
  uint64_t delta = 0;
  uint64_t* to = out.data();
  return ReadVarints(in, end, out.size(), [&value, &delta, &to](uint64_t zigzag) {
    delta += UnZigZag(zigzag);
    value += delta;
    *to++ = value;
  });
}

// Reads the dictionary and one index for each value. Like DecodeIntegers it accepts nothing behind
// them.
ColumnError ReadDictionary(const uint8_t* in, const uint8_t* end, std::span<uint64_t> out) {
  uint64_t distinct = 0;
  in = ReadVarint(in, end, distinct);
  if (in == nullptr) return ColumnError::kTruncated;
  if (distinct == 0 || distinct > kDictionaryValuesMax) return ColumnError::kIndex;
  std::array<uint64_t, kDictionaryValuesMax> dictionary;
  in = ReadDeltas(in, end, std::span(dictionary).first(distinct));
  assert(in == nullptr || in <= end);
  if (in == nullptr || static_cast<size_t>(end - in) < out.size()) return ColumnError::kTruncated;
  if (static_cast<size_t>(end - in) > out.size()) return ColumnError::kTrailing;
  // Checked for all indexes at once, so that the loop below needs no check.
  if (*std::max_element(in, end) >= distinct) return ColumnError::kIndex;
  std::transform(in, end, out.begin(), [&dictionary](uint8_t index) { return dictionary[index]; });
  return ColumnError::kNone;
}

}  // namespace

std::string_view ToString(ColumnError error) {
  switch (error) {
    case ColumnError::kNone:
      return "fine";
    case ColumnError::kTruncated:
      return "ends inside a value";
    case ColumnError::kTrailing:
      return "continues after its last value";
    case ColumnError::kEncoding:
      return "has an unknown encoding";
    case ColumnError::kIndex:
      return "has an index beyond its table";
    case ColumnError::kNotFinite:
      return "has a double that is not finite";
  }
  return "unknown";
}

uint8_t* EncodeIntegers(std::span<const uint64_t> values, IntegerEncoding encoding, uint8_t* out) {
  if (values.empty()) return out;
  uint8_t* const start = out++;
  const uint64_t first = values.front();
  // Columns of one value are very frequent: ranks, threads, sizes.
  if (std::all_of(values.begin(), values.end(), [first](uint64_t v) { return v == first; })) {
    *start = static_cast<uint8_t>(IntegerEncoding::kConstant);
    return WriteVarint(first, out);
  }
  if (encoding == IntegerEncoding::kDictionary) {
    *start = static_cast<uint8_t>(IntegerEncoding::kDictionary);
    if (uint8_t* end = WriteDictionary(values, out); end != nullptr) return end;
  }
  if (encoding == IntegerEncoding::kDeltaOfDelta) {
    *start = static_cast<uint8_t>(IntegerEncoding::kDeltaOfDelta);
    return WriteDeltasOfDeltas(values, out);
  }
  *start = static_cast<uint8_t>(IntegerEncoding::kDelta);
  return WriteDeltas(values, out);
}

ColumnError DecodeIntegers(std::string_view bytes, std::span<uint64_t> out) {
  if (out.empty()) return bytes.empty() ? ColumnError::kNone : ColumnError::kTrailing;
  if (bytes.empty()) return ColumnError::kTruncated;
  const auto* in = reinterpret_cast<const uint8_t*>(bytes.data());
  const uint8_t* const end = in + bytes.size();
  switch (static_cast<IntegerEncoding>(*in++)) {
    case IntegerEncoding::kDelta:
      return FinishedAt(ReadDeltas(in, end, out), end);
    case IntegerEncoding::kConstant: {
      uint64_t value = 0;
      const uint8_t* const after = ReadVarint(in, end, value);
      std::fill(out.begin(), out.end(), value);
      return FinishedAt(after, end);
    }
    case IntegerEncoding::kDictionary:
      return ReadDictionary(in, end, out);
    case IntegerEncoding::kDeltaOfDelta:
      return FinishedAt(ReadDeltasOfDeltas(in, end, out), end);
  }
  return ColumnError::kEncoding;
}

}  // namespace neurontrace
