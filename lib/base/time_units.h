// SPDX-License-Identifier: Apache-2.0
// Spans of time in nanoseconds, in which all of neurontrace counts. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace neurontrace {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// "1.5 s".
std::string FormatSeconds(uint64_t ns);

// Sums and differences that end at the range's ends. A time that comes from another machine may be
// anything.
constexpr uint64_t AddSaturating(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
constexpr uint64_t SubtractSaturating(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace neurontrace
