// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace neurontrace {

// A decimal number as nanoseconds: the magnitude rounded down, with its sign. `exact` is false if
// digits below a nanosecond were cut.
struct DecimalTime {
  // For "-0" `negative` is true and `ns` is 0.
  uint64_t ns = 0;
  bool negative = false;
  bool exact = true;
  friend bool operator==(const DecimalTime&, const DecimalTime&) = default;
};

// Parses a JSON number ("4462233412.125", "1.5e3", "-2") as microseconds, digit by digit: a double
// has 53 bits and would lose nanoseconds of an epoch time. Returns nothing if the text is not a
// JSON number or is 2^64 ns or more. Pure.
std::optional<DecimalTime> ParseMicroseconds(std::string_view text);
// Parses a number of nanoseconds ("1.79e18") in the same way.
std::optional<DecimalTime> ParseNanoseconds(std::string_view text);

}  // namespace neurontrace
