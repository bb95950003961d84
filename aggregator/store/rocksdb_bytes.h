// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/crc32c.h"

namespace neurontrace {

// How RocksDB writes numbers and checksums into its files, for code that reads damaged ones and
// rewrites logs. Pure functions.
//
// Returns the little-endian number in the sizeof(T) bytes from `at` on.
template <typename T>
T Little(const char* at) {
  T value = 0;
  for (int i = sizeof(T) - 1; i >= 0; --i) value = (value << 8) | static_cast<uint8_t>(at[i]);
  return value;
}

// Converts a CRC-32C from the form in which files store it. RocksDB rotates it and adds a constant,
// so that the checksum of bytes that contain checksums remains meaningful (RocksDB, util/crc32c.h).
constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// Returns the inverse of UnmaskCrc.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// Writes the masked checksum of `bytes` into the four bytes from `at` on.
inline void PutCrc(std::string_view bytes, char* at) {
  const uint32_t masked = MaskCrc(Crc32c(bytes.data(), bytes.size()));
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>((masked >> (8 * i)) & 0xff);
}

}  // namespace neurontrace
