// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// Spans of time in nanoseconds, the unit of every time in neurontrace. The functions are pure.
namespace neurontrace {

inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

// Returns seconds with one decimal, as "1.5 s". For messages.
std::string FormatSeconds(uint64_t ns);

// Sums and differences that stop at the ends of the range instead of wrapping: a time from another
// machine may be anything.
constexpr uint64_t AddSaturating(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
constexpr uint64_t SubtractSaturating(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace neurontrace
