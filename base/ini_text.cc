// SPDX-License-Identifier: Apache-2.0
#include "base/ini_text.h"

namespace neurontrace {

std::string_view TrimmedIni(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

bool IsIniComment(std::string_view text) {
  return text.empty() || text[0] == '#' || text[0] == ';';
}

std::optional<std::string_view> IniValueOf(std::string_view text) {
  text = TrimmedIni(text);
  if (text.starts_with('"')) {
    const size_t end = text.find('"', 1);
    if (end == std::string_view::npos || !IsIniComment(TrimmedIni(text.substr(end + 1)))) {
      return std::nullopt;
    }
    return text.substr(1, end - 1);
  }
  if (IsIniComment(text)) return std::string_view();
  for (size_t at = 1; at < text.size(); ++at) {
    const bool after_blank = text[at - 1] == ' ' || text[at - 1] == '\t';
    if (after_blank && (text[at] == '#' || text[at] == ';')) {
      return TrimmedIni(text.substr(0, at));
    }
  }
  return text;
}

}  // namespace neurontrace
