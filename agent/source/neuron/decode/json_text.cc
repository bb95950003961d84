// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/decode/json_text.h"

#include <charconv>
#include <optional>
#include <system_error>

#include "absl/strings/ascii.h"

namespace neurontrace {
namespace {

// The magnitude of the least int64_t, which its negation cannot express.
constexpr uint64_t kInt64MinMagnitude = uint64_t{1} << 63;

// Matches the grammar number = [ "-" ] int [ frac ] [ exp ] of RFC 8259 against the whole text.
bool IsJsonNumber(const char* p, const char* end) {
  if (p < end && *p == '-') ++p;
  if (p == end || !absl::ascii_isdigit(*p)) return false;
  if (*p == '0') {
    ++p;
  } else {
    while (p < end && absl::ascii_isdigit(*p)) ++p;
  }
  if (p < end && *p == '.') {
    ++p;
    if (p == end || !absl::ascii_isdigit(*p)) return false;
    while (p < end && absl::ascii_isdigit(*p)) ++p;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end && (*p == '+' || *p == '-')) ++p;
    if (p == end || !absl::ascii_isdigit(*p)) return false;
    while (p < end && absl::ascii_isdigit(*p)) ++p;
  }
  return p == end;
}

// Returns the value of the four hexadecimal digits at `at`; nothing if there are fewer. from_chars
// stops at the first other character, so the end of the parse is checked.
std::optional<uint32_t> FourHexDigits(std::string_view text, size_t at) {
  if (text.size() < at + 4) return std::nullopt;
  uint32_t value = 0;
  const char* const begin = text.data() + at;
  const auto result = std::from_chars(begin, begin + 4, value, 16);
  if (result.ec != std::errc() || result.ptr != begin + 4) return std::nullopt;
  return value;
}

// Appends a code point in UTF-8 (RFC 3629). Requires that it is at most 0x10ffff and no surrogate.
void AppendUtf8(uint32_t code_point, std::string& out) {
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

// Returns the code point of the \u escape whose digits begin at `at`, and moves `at` behind it and
// behind the second half of a surrogate pair.
std::optional<uint32_t> ReadCodePoint(std::string_view text, size_t& at) {
  const std::optional<uint32_t> first = FourHexDigits(text, at);
  if (!first) return std::nullopt;
  at += 4;
  // UTF-16 surrogates (RFC 8259, section 7): a high half must be followed by a low half.
  if (*first < 0xd800 || *first > 0xdfff) return first;
  if (*first > 0xdbff || text.substr(at, 2) != "\\u") return std::nullopt;
  const std::optional<uint32_t> second = FourHexDigits(text, at + 2);
  if (!second || *second < 0xdc00 || *second > 0xdfff) return std::nullopt;
  at += 6;
  return 0x10000 + ((*first - 0xd800) << 10) + (*second - 0xdc00);
}

// Returns the character of an escape of two characters; 0 if `c` begins none.
char PlainEscape(char c) {
  switch (c) {
    case '"':
    case '\\':
    case '/':
      return c;
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return '\0';
  }
}

}  // namespace

bool ParseCanonicalInt(const char* text, size_t size, int64_t& value) {
  const bool negative = size > 0 && text[0] == '-';
  uint64_t magnitude = 0;
  if (!ParseCanonicalUint(text + negative, size - negative, magnitude)) return false;
  if (negative) {
    // "-0" has a spelling of its own, which an integer cannot reproduce.
    if (magnitude == 0 || magnitude > kInt64MinMagnitude) return false;
    value = static_cast<int64_t>(0 - magnitude);
    return true;
  }
  if (magnitude >= kInt64MinMagnitude) return false;
  value = static_cast<int64_t>(magnitude);
  return true;
}

ValueType ClassifyNumber(const char* text, size_t size, uint64_t& bits) {
  if (ParseCanonicalUint(text, size, bits)) return ValueType::kUint;
  // Everything that is not negative was tried as unsigned before.
  int64_t negative = 0;
  if (ParseCanonicalInt(text, size, negative)) {
    bits = static_cast<uint64_t>(negative);
    return ValueType::kInt;
  }
  if (!IsJsonNumber(text, text + size)) return ValueType::kNull;
  double number = 0;
  const auto parsed = std::from_chars(text, text + size, number);
  char again[32];
  // Shortest text that parses to the same double. Only a number that it reproduces may become one.
  const auto written = std::to_chars(again, again + sizeof again, number);
  bits = 0;
  if (parsed.ec != std::errc() ||
      std::string_view(again, written.ptr) != std::string_view(text, size)) {
    return ValueType::kJson;
  }
  bits = std::bit_cast<uint64_t>(number);
  return ValueType::kDouble;
}

// Copies the stretches between escapes at once, as most texts have few. A failure takes back what
// was appended.
bool AppendUnescaped(std::string_view inside, std::string& out) {
  const size_t before = out.size();
  size_t at = 0;
  while (at < inside.size()) {
    const size_t escape = inside.find('\\', at);
    if (escape == std::string_view::npos) break;
    out.append(inside, at, escape - at);
    at = escape + 2;
    // A backslash may be the last character, with nothing behind it.
    const char kind = at <= inside.size() ? inside[escape + 1] : '\0';
    if (kind == 'u') {
      if (const auto code_point = ReadCodePoint(inside, at)) {
        AppendUtf8(*code_point, out);
        continue;
      }
    } else if (const char plain = PlainEscape(kind); plain != '\0') {
      out += plain;
      continue;
    }
    out.resize(before);
    return false;
  }
  if (at < inside.size()) out.append(inside, at, inside.size() - at);
  return true;
}

// Unlike ReadCodePoint it looks at each \u alone, so halves of surrogate pairs pass.
bool EscapesAreWellFormed(std::string_view inside) {
  for (size_t at = inside.find('\\'); at != std::string_view::npos; at = inside.find('\\', at)) {
    if (at + 1 >= inside.size()) return false;
    const char kind = inside[at + 1];
    if (kind == 'u' ? !FourHexDigits(inside, at + 2) : PlainEscape(kind) == '\0') return false;
    at += kind == 'u' ? 6 : 2;
  }
  return true;
}

}  // namespace neurontrace
