// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clean_text.h"

#include <algorithm>

namespace neurontrace {

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

// Terminals obey U+0080 to U+009F as they obey ESC: U+009B is "ESC [".
static bool IsC1Control(std::string_view character) {
  return character.size() == 2 && character[0] == '\xc2' &&
         static_cast<unsigned char>(character[1]) < 0xa0;
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
    size_t bytes = Utf8SequenceBytes(text);
    std::string_view character = text.substr(0, bytes);
    if (bytes == 0 || IsControl(text[0]) || IsC1Control(character)) character = "?";
    if (clean.size() + character.size() > bytes_max) break;
    clean += character;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return clean;
}

}  // namespace neurontrace
