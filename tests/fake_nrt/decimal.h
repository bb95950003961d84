// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neurontrace {

// "00" to "99" one after the other.
inline constexpr std::array<char, 200> kDigitPairs = [] {
  std::array<char, 200> pairs = {};
  for (size_t i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

// Writes exactly eight digits of a number below 10^8. In groups, as their divisions do not wait for
// each other.
inline void WriteEightDigits(char* out, uint32_t value) {
  const uint32_t high = value / 10000;
  const uint32_t low = value % 10000;
  std::memcpy(out, &kDigitPairs[high / 100 * 2], 2);
  std::memcpy(out + 2, &kDigitPairs[high % 100 * 2], 2);
  std::memcpy(out + 4, &kDigitPairs[low / 100 * 2], 2);
  std::memcpy(out + 6, &kDigitPairs[low % 100 * 2], 2);
}

// Writes a number in decimal, without leading zeros; returns the end, at most 20 characters on.
inline char* WriteDecimal(char* out, uint64_t value) {
  constexpr uint64_t kEight = 100'000'000;
  char digits[24];
  size_t count = 8;
  if (value < kEight) {
    WriteEightDigits(digits, static_cast<uint32_t>(value));
  } else if (value < kEight * kEight) {
    WriteEightDigits(digits, static_cast<uint32_t>(value / kEight));
    WriteEightDigits(digits + 8, static_cast<uint32_t>(value % kEight));
    count = 16;
  } else {
    const uint64_t low = value % (kEight * kEight);
    WriteEightDigits(digits, static_cast<uint32_t>(value / (kEight * kEight)));
    WriteEightDigits(digits + 8, static_cast<uint32_t>(low / kEight));
    WriteEightDigits(digits + 16, static_cast<uint32_t>(low % kEight));
    count = 24;
  }
  size_t zeros = 0;
  while (zeros + 1 < count && digits[zeros] == '0') ++zeros;
  std::memcpy(out, digits + zeros, count - zeros);
  return out + (count - zeros);
}

}  // namespace neurontrace
