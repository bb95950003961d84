// SPDX-License-Identifier: Apache-2.0
// How RocksDB writes numbers and checksums into its files, for those that read a damaged one
// or write one again. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "lib/base/crc32c.h"

namespace neurontrace {

// The little-endian number in the sizeof(T) bytes from `at` on.
template <typename T>
T Little(const char* at) {
  T value = 0;
  for (int i = sizeof(T) - 1; i >= 0; --i) value = (value << 8) | static_cast<uint8_t>(at[i]);
  return value;
}

// A CRC-32C out of the form in which files hold it, so that a checksum of bytes that hold
// checksums stays one: rotated, plus a constant (RocksDB, util/crc32c.h).
constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

// The way there.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// The checksum of `bytes`, as files hold it, into the four bytes from `at` on.
inline void PutCrc(std::string_view bytes, char* at) {
  const uint32_t masked = MaskCrc(Crc32c(bytes.data(), bytes.size()));
  for (int i = 0; i < 4; ++i) at[i] = static_cast<char>((masked >> (8 * i)) & 0xff);
}

}  // namespace neurontrace
