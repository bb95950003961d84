// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clean_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace neurontrace {
namespace {

// A range of characters, both ends included.
struct CharacterRange {
  uint32_t first;
  uint32_t last;
};

// Categories Cf, Zl and Zp of Unicode 15, ascending.
constexpr auto kInvisible = std::to_array<CharacterRange>({
    {0x00ad, 0x00ad},   {0x0600, 0x0605},   {0x061c, 0x061c},   {0x06dd, 0x06dd},
    {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},   {0x180e, 0x180e},
    {0x200b, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x2064},   {0x2066, 0x206f},
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
    {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0001, 0xe0001},
    {0xe0020, 0xe007f},
});

// Returns the code point of one valid UTF-8 sequence.
uint32_t CodePointOf(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fu >> character.size());
  for (const char c : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return code;
}

// Terminals obey U+0080 to U+009F as they obey ESC: U+009B is "ESC [".
bool IsC1Control(uint32_t code) { return code >= 0x80 && code < 0xa0; }

bool IsInvisible(uint32_t code) {
  const auto range = std::ranges::lower_bound(kInvisible, code, {},
                                              [](const CharacterRange& r) { return r.last; });
  return range != kInvisible.end() && code >= range->first;
}

}  // namespace

// The ranges are those of table 3-7 of the Unicode standard: the second byte is narrower than
// 0x80..0xbf after e0 and f0, where it excludes overlong forms, after ed (surrogates) and after f4
// (beyond U+10FFFF).
size_t Utf8SequenceBytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (text.empty()) return 0;
  const unsigned char c = byte(0);
  if (c < 0x80) return 1;
  if (c >= 0xc2 && c <= 0xdf) return tail(1) ? 2 : 0;
  if (c >= 0xe0 && c <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (c == 0xe0 && byte(1) < 0xa0) return 0;
    return c == 0xed && byte(1) > 0x9f ? 0 : 3;
  }
  if (c >= 0xf0 && c <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (c == 0xf0 && byte(1) < 0x90) return 0;
    return c == 0xf4 && byte(1) > 0x8f ? 0 : 4;
  }
  return 0;
}

std::string CleanText(std::string_view text, size_t bytes_max) {
  // Most texts are short ASCII and need no walk over characters.
  if (text.size() <= bytes_max && std::all_of(text.begin(), text.end(), [](char c) {
        return !IsControl(c) && (c & 0x80) == 0;
      })) {
    return std::string(text);
  }
  std::string clean;
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    std::string_view character = text.substr(0, bytes);
    std::string escaped;
    const uint32_t code = bytes == 0 ? 0 : CodePointOf(character);
    if (bytes == 0 || IsControl(text[0]) || IsC1Control(code)) {
      character = "?";
    } else if (IsInvisible(code)) {
      escaped = code <= 0xffff ? fmt::format("\\u{:04x}", code) : fmt::format("\\u{{{:x}}}", code);
      character = escaped;
    }
    if (clean.size() + character.size() > bytes_max) break;
    clean += character;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

}  // namespace neurontrace
