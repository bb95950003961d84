// SPDX-License-Identifier: Apache-2.0
// Variable-length integers of chunk columns, as in Protocol Buffers: base 128, least significant
// group first. The high bit of a byte is set if another byte follows. An integer has at most ten
// bytes. The functions may be called from any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neurontrace {

static_assert(std::endian::native == std::endian::little, "columns are read eight bytes at a time");

inline constexpr size_t kVarintBytesMax = 10;

// Maps small differences of either sign to small numbers, as Protocol Buffers' sint64 does.
// Arithmetic wraps, so every 64-bit difference survives.
constexpr uint64_t ZigZag(uint64_t delta) { return (delta << 1) ^ (0 - (delta >> 63)); }
constexpr uint64_t UnZigZag(uint64_t zigzag) { return (zigzag >> 1) ^ (0 - (zigzag & 1)); }

// Writes to `out`, which has room for kVarintBytesMax bytes, and returns the end of the written
// bytes.
inline uint8_t* WriteVarint(uint64_t value, uint8_t* out) {
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Returns the position after the integer, or nullptr if it runs past `end` or over 64 bits.
inline const uint8_t* ReadVarint(const uint8_t* in, const uint8_t* end, uint64_t& value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (in == end) return nullptr;
    const uint64_t byte = *in++;
    result |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      if (shift == 63 && byte > 1) return nullptr;
      value = result;
      return in;
    }
  }
  return nullptr;
}

// Reads `count` integers and calls sink(value) with each. Returns as ReadVarint does. Runs of one
// byte each are read eight at a time; longer ones are assembled without branches on their length,
// as lengths of real columns cannot be predicted.
template <typename Sink>
const uint8_t* ReadVarints(const uint8_t* in, const uint8_t* end, size_t count, Sink&& sink) {
  constexpr uint64_t kHighBits = 0x8080808080808080u;
  while (count > 0 && end - in >= 8) {
    uint64_t word;
    memcpy(&word, in, 8);
    // A bit for each byte that ends an integer.
    const uint64_t stops = ~word & kHighBits;
    if (stops == kHighBits && count >= 8) {
      for (int i = 0; i < 8; ++i) sink((word >> (8 * i)) & 0x7f);
      in += 8;
      count -= 8;
      continue;
    }
    // The integer has nine or ten bytes.
    if (stops == 0) {
      uint64_t value;
      in = ReadVarint(in, end, value);
      if (in == nullptr) return nullptr;
      sink(value);
    } else {
      // Masks the bytes of the first integer without their high bits, then closes the gaps of one,
      // two and four bits between groups.
      in += (std::countr_zero(stops) >> 3) + 1;
      word &= (stops ^ (stops - 1)) & ~kHighBits;
      word = ((word & 0x7f007f007f007f00u) >> 1) | (word & 0x007f007f007f007fu);
      word = ((word & 0x3fff00003fff0000u) >> 2) | (word & 0x00003fff00003fffu);
      word = ((word & 0x0fffffff00000000u) >> 4) | (word & 0x000000000fffffffu);
      sink(word);
    }
    --count;
  }
  for (; count > 0; --count) {
    uint64_t value;
    in = ReadVarint(in, end, value);
    if (in == nullptr) return nullptr;
    sink(value);
  }
  return in;
}

}  // namespace neurontrace
