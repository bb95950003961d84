// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

// One column of 64-bit integers inside a chunk: a byte that names the encoding, then the values;
// no byte at all without values. docs/formats/chunk.md has the bytes. Any thread may call.
namespace neurontrace {

// Values are in stored chunks: never change one.
enum class IntegerEncoding : uint8_t {
  kDelta = 0,         // zigzag difference from the value before, 0 before the first
  kConstant = 1,      // one value for all
  kDictionary = 2,    // the distinct values, then one byte an entry
  kDeltaOfDelta = 3,  // zigzag difference of the difference from the one before
};
inline constexpr uint8_t kIntegerEncodingMax = 3;
// Readers accept dictionaries up to this size; the writer makes smaller ones.
inline constexpr size_t kDictionaryValuesMax = 256;

// What is wrong with an encoded column.
enum class ColumnError : uint8_t {
  kNone,
  kTruncated,  // ends inside a value, or a varint is over ten bytes
  kTrailing,   // continues after the last value
  kEncoding,   // an encoding that this version does not know
  kIndex,      // an index beyond the table it points into
  kNotFinite,  // a double that is infinite or not a number
};
// Returns the error as the end of a sentence whose subject is the column.
std::string_view ToString(ColumnError error);

// Returns the room that EncodeIntegers needs for `count` values.
constexpr size_t IntegerColumnBytesMax(size_t count) {
  return count == 0 ? 0 : 10 * count + 10 * kDictionaryValuesMax + 16;
}

// Writes the column to `out`, which has room for IntegerColumnBytesMax, and returns its end.
// `encoding` is a preference: a column of equal values becomes kConstant, and kDictionary becomes
// kDelta if there are too many distinct values.
uint8_t* EncodeIntegers(std::span<const uint64_t> values, IntegerEncoding encoding, uint8_t* out);

// Fills `out` from all of `bytes`, which may be hostile. After an error the content of `out` is
// undefined.
ColumnError DecodeIntegers(std::string_view bytes, std::span<uint64_t> out);

}  // namespace neurontrace
