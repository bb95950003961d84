// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json_string.h"

#include "lib/base/clean_text.h"

namespace neurontrace {

void AppendJsonString(std::string_view text, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  // Copies runs of plain characters at once; nearly every string is a single run.
  size_t plain = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text.data() + plain, i - plain);
    plain = i + 1;
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
    }
  }
  out.append(text.data() + plain, text.size() - plain);
  out += '"';
}

std::string JsonText(std::string_view text) {
  std::string valid;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t bytes = Utf8SequenceBytes(rest);
    valid += bytes == 0 ? "?" : rest.substr(0, bytes);
    rest.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  std::string json;
  AppendJsonString(valid, json);
  return json;
}

}  // namespace neurontrace
