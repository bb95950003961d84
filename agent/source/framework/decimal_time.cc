// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/decimal_time.h"

#include "absl/strings/ascii.h"

// Digits are moved across the decimal point by counting, not by arithmetic, so no digit is rounded.
namespace neurontrace {
namespace {

// Appends a digit; false when it would not fit.
bool AppendDigit(uint64_t& value, unsigned digit) {
  return !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
         !__builtin_add_overflow(value, uint64_t{digit}, &value);
}

// A JSON number (RFC 8259, section 6) in parts. The digits are those of `whole` and `fraction`
// without the point.
struct NumberParts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  int64_t exponent = 0;
};

// Removes and returns the digits at the beginning of the text; there may be none.
std::string_view ConsumeDigits(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && absl::ascii_isdigit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// Returns nothing for anything but a whole JSON number with an exponent of at most nine digits.
std::optional<NumberParts> Split(std::string_view text) {
  NumberParts parts;
  if (text.starts_with('-')) {
    parts.negative = true;
    text.remove_prefix(1);
  }
  parts.whole = ConsumeDigits(text);
  if (parts.whole.empty() || (parts.whole[0] == '0' && parts.whole.size() > 1)) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    parts.fraction = ConsumeDigits(text);
    if (parts.fraction.empty()) return std::nullopt;
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    const bool negative = text.starts_with('-');
    if (negative || text.starts_with('+')) text.remove_prefix(1);
    const std::string_view digits = ConsumeDigits(text);
    // Nine digits keep the sum of exponent and lengths far within int64_t.
    if (digits.empty() || digits.size() > 9) return std::nullopt;
    for (const char c : digits) parts.exponent = parts.exponent * 10 + (c - '0');
    if (negative) parts.exponent = -parts.exponent;
  }
  if (!text.empty()) return std::nullopt;
  return parts;
}

// `shift`: how many digits behind the point belong to the whole nanoseconds.
std::optional<DecimalTime> ParseShifted(std::string_view text, int64_t shift) {
  const auto parts = Split(text);
  if (!parts) return std::nullopt;
  DecimalTime time;
  time.negative = parts->negative;
  // How many of all digits are before the point once the number is in nanoseconds.
  int64_t kept = static_cast<int64_t>(parts->whole.size()) + parts->exponent + shift;
  for (const std::string_view digits : {parts->whole, parts->fraction}) {
    for (const char c : digits) {
      if (kept > 0) {
        if (!AppendDigit(time.ns, static_cast<unsigned>(c - '0'))) return std::nullopt;
      } else if (c != '0') {
        time.exact = false;
      }
      --kept;
    }
  }
  // 0e999999999 is 0: nothing to multiply then.
  for (; kept > 0 && time.ns != 0; --kept) {
    if (!AppendDigit(time.ns, 0)) return std::nullopt;
  }
  return time;
}

}  // namespace

std::optional<DecimalTime> ParseMicroseconds(std::string_view text) {
  return ParseShifted(text, 3);
}

std::optional<DecimalTime> ParseNanoseconds(std::string_view text) { return ParseShifted(text, 0); }

}  // namespace neurontrace
