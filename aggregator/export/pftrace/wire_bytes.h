// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

// Protobuf's wire format as bytes, for the hot path: each function writes at `out` and returns the
// end. The caller has made room. Pure functions.
namespace neurontrace::wire_bytes {

// Bytes of the longest varint: 64 bits in groups of seven.
inline constexpr size_t kVarintMax = 10;

// Writes a base-128 varint of up to kVarintMax bytes (protobuf's encoding guide): groups of seven
// bits, the lowest first, with the top bit set if more follow.
inline char* Varint(char* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<char>(value);
  return out;
}

// Returns the length of the value's varint.
inline size_t VarintBytes(uint64_t value) {
  return 1 + static_cast<size_t>(63 - __builtin_clzll(value | 1)) / 7;
}

// For tags below 128, and for lengths that are known to be.
inline char* Byte(char* out, uint8_t value) {
  *out++ = static_cast<char>(value);
  return out;
}

// Writes eight bytes.
inline char* Fixed64(char* out, uint64_t value) {
  // Little endian, as are all machines that this runs on.
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

inline char* Bytes(char* out, std::string_view bytes) {
  // memcpy must not get a null pointer, even for no bytes.
  if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
  return out + bytes.size();
}

}  // namespace neurontrace::wire_bytes
