// SPDX-License-Identifier: Apache-2.0
#include "cli/json_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clean_text.h"

namespace neurontrace::cli {

std::string JsonText(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const size_t bytes = std::max<size_t>(Utf8SequenceBytes(text), 1);
    const unsigned char first = static_cast<unsigned char>(text[0]);
    if (first == '"' || first == '\\') {
      out += '\\';
      out += text[0];
    } else if (first < 0x20) {
      out += fmt::format("\\u{:04x}", first);
    } else if (bytes == 1 && first >= 0x80) {
      out += '?';
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out + '"';
}

}  // namespace neurontrace::cli
