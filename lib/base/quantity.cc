// SPDX-License-Identifier: Apache-2.0
#include "lib/base/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Bytes of a refused text that a message quotes.
constexpr size_t kShownAmountBytesMax = 100;
// The sum of 18 sizes below this fits 64 bits.
constexpr uint64_t kByteSizeEnd = 1'000'000'000'000'000'000;

// The units by their names in lower case. The SI prefixes are of 1000, those of IEC 80000-13 of
// 1024.
struct ByteUnit {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<ByteUnit, 22> kByteUnits = {{{"", 1},
                                                  {"b", 1},
                                                  {"k", 1'000},
                                                  {"kb", 1'000},
                                                  {"m", 1'000'000},
                                                  {"mb", 1'000'000},
                                                  {"g", 1'000'000'000},
                                                  {"gb", 1'000'000'000},
                                                  {"t", 1'000'000'000'000},
                                                  {"tb", 1'000'000'000'000},
                                                  {"p", 1'000'000'000'000'000},
                                                  {"pb", 1'000'000'000'000'000},
                                                  {"ki", uint64_t{1} << 10},
                                                  {"kib", uint64_t{1} << 10},
                                                  {"mi", uint64_t{1} << 20},
                                                  {"mib", uint64_t{1} << 20},
                                                  {"gi", uint64_t{1} << 30},
                                                  {"gib", uint64_t{1} << 30},
                                                  {"ti", uint64_t{1} << 40},
                                                  {"tib", uint64_t{1} << 40},
                                                  {"pi", uint64_t{1} << 50},
                                                  {"pib", uint64_t{1} << 50}}};

// Returns 0 if there is no such unit.
uint64_t BytesOfUnit(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const auto unit = std::find_if(kByteUnits.begin(), kByteUnits.end(),
                                 [&](const ByteUnit& each) { return each.name == lower; });
  return unit == kByteUnits.end() ? 0 : unit->bytes;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument(
        "'{}' is not a size; write it like 2GB or 500MB (of 1000) or 64MiB (of 1024)",
        CleanText(text, kShownAmountBytesMax));
  };
  // from_chars would also accept "inf", "nan" and a sign.
  if (text.empty() || !IsDigit(text.front())) return wrong();
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const size_t number_bytes = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(number_bytes);
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  // A number with a trailing blank has no unit behind it.
  if (unit.empty() && number_bytes != text.size()) return wrong();
  // "Kb" and "Mib" mean bits to most people.
  const bool is_bits = unit.size() > 1 && unit.ends_with('b') && unit[0] < 'a';
  const uint64_t scale = is_bits ? 0 : BytesOfUnit(unit);
  if (scale == 0) return wrong();
  // Whole numbers are computed exactly: a double has 53 bits.
  uint64_t whole = 0;
  if (const auto [rest, error] = std::from_chars(begin, end, whole);
      error == std::errc() && rest == begin + number_bytes) {
    if (whole > (kByteSizeEnd - 1) / scale) return wrong();
    return whole * scale;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(begin, end, value, std::chars_format::fixed);
  if (error != std::errc() || rest != begin + number_bytes) return wrong();
  const double bytes = value * static_cast<double>(scale);
  // With a fraction the unit must be larger than a byte: "0.5 B" and "1.0" are refused.
  const bool is_fraction_of_byte = scale == 1 || (value > 0 && bytes < 1);
  if (is_fraction_of_byte || bytes >= static_cast<double>(kByteSizeEnd)) return wrong();
  return static_cast<uint64_t>(std::llround(bytes));
}

std::string CheckWholeNumber(const std::string& text) {
  const bool is_number = !text.empty() && std::all_of(text.begin(), text.end(), IsDigit) &&
                         (text.size() == 1 || text.front() != '0');
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (is_number && parsed.ec == std::errc()) return "";
  if (is_number) {
    return fmt::format("{} is too large", CleanText(text, kShownAmountBytesMax));
  }
  return fmt::format("'{}' is not a whole number; write it in decimal digits, such as 64",
                     CleanText(text, kShownAmountBytesMax));
}

}  // namespace neurontrace
