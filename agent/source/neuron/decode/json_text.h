// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "lib/trace/event.h"

// The spelling of JSON's scalars (RFC 8259). Pure functions; those that say so read up to 8 bytes
// beyond the text they are given, which the padding of a document allows.
namespace neurontrace {

namespace json_text_internal {

// Reads eight bytes at any alignment.
inline uint64_t Load8(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

// Returns whether all eight bytes are ASCII digits (Lemire, "Quickly parsing eight digits", 2018):
// adding 6 carries out of the low nibble for the characters above '9'.
inline bool AreEightDigits(uint64_t word) {
  return ((word & (word + 0x0606060606060606)) & 0xf0f0f0f0f0f0f0f0) == 0x3030303030303030;
}

// Returns the number that eight digits spell, the first one in the lowest byte. Three
// multiplications combine neighbours to pairs, fours and the whole (the same source). Requires
// AreEightDigits.
inline uint64_t EightDigits(uint64_t word) {
  word = (word & 0x0f0f0f0f0f0f0f0f) * 2561 >> 8;
  word = (word & 0x00ff00ff00ff00ff) * 6553601 >> 16;
  return (word & 0x0000ffff0000ffff) * 42949672960001 >> 32;
}

}  // namespace json_text_internal

// Returns whether JSON allows the character between tokens. Other control characters are faults.
inline bool IsJsonBlank(char c) {
  return static_cast<unsigned char>(c) <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
}

// Returns true if text[0, size) contains a backslash, by the test for a zero byte in a word
// (Anderson, "Bit Twiddling Hacks"). Reads up to 8 bytes beyond.
inline bool HasBackslash(const char* text, size_t size) {
  for (size_t i = 0; i < size; i += 8) {
    uint64_t word = json_text_internal::Load8(text + i) ^ 0x5c5c5c5c5c5c5c5c;
    // Bytes beyond the text are set, so that they cannot look like a backslash.
    const size_t left = size - i;
    if (left < 8) word |= ~uint64_t{0} << (left * 8);
    if (((word - 0x0101010101010101) & ~word & 0x8080808080808080) != 0) return true;
  }
  return false;
}

// Parses an unsigned number in its shortest spelling: no sign, no leading zero, at most 2^64 - 1.
// Returns false for any other text, with `value` unchanged. Reads up to 8 bytes beyond.
inline bool ParseCanonicalUint(const char* text, size_t size, uint64_t& value) {
  if (size == 0 || size > 20 || (text[0] == '0' && size > 1)) return false;
  uint64_t result = 0;
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const uint64_t word = json_text_internal::Load8(text + i);
    if (!json_text_internal::AreEightDigits(word)) return false;
    result = result * 100'000'000 + json_text_internal::EightDigits(word);
  }
  for (; i < size; ++i) {
    const auto digit = static_cast<unsigned char>(text[i] - '0');
    if (digit > 9 || __builtin_mul_overflow(result, uint64_t{10}, &result) ||
        __builtin_add_overflow(result, uint64_t{digit}, &result)) {
      return false;
    }
  }
  value = result;
  return true;
}

// Parses in the same way, with a minus allowed before anything but 0. `value` is unchanged for any
// other text.
bool ParseCanonicalInt(const char* text, size_t size, int64_t& value);

// Returns how a number is kept: kUint, kInt or kDouble if that reproduces the same text (`bits`
// then has the value), kJson for any other number that JSON allows, kNull if it is no number.
ValueType ClassifyNumber(const char* text, size_t size, uint64_t& bits);

// Appends the text that the inside of a JSON string denotes. Returns false, with nothing appended,
// if an escape is invalid or is half of a surrogate pair.
bool AppendUnescaped(std::string_view inside, std::string& out);

// Returns true if every backslash begins an escape that JSON's grammar allows, including halves of
// surrogate pairs, which AppendUnescaped refuses.
bool EscapesAreWellFormed(std::string_view inside);

static_assert(std::endian::native == std::endian::little, "digits are read as little-endian words");

}  // namespace neurontrace
