// SPDX-License-Identifier: Apache-2.0
#include "cli/folded_lines.h"

#include <fmt/format.h>

#include <cctype>

namespace neurontrace::cli {
namespace {

// Returns whether the byte may be part of a name such as an instance id or an address.
bool IsNameByte(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// Recognises numbers and lists of ranges such as "0-3,8-11", however many ranges there are.
bool IsRangeText(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-,. ") == std::string_view::npos;
}

}  // namespace

// Replaces each known name by '@' and each number by '#'. Works on whole names, so that instance
// i-1 is not found in i-10.
std::string FoldedLines::PatternOf(std::string_view line) const {
  std::string pattern;
  for (size_t at = 0; at < line.size();) {
    size_t end = at;
    while (end < line.size() && IsNameByte(line[end])) ++end;
    if (end == at) {
      pattern += line[at++];
      continue;
    }
    const std::string_view word = line.substr(at, end - at);
    if (names_.contains(std::string(word))) {
      pattern += '@';
    } else if (IsRangeText(word)) {
      // A list of numbers and ranges counts as one number.
      if (!pattern.ends_with("#, ") && !pattern.ends_with("#,")) {
        pattern += '#';
      } else {
        pattern.resize(pattern.rfind('#') + 1);
      }
    } else {
      // Other names keep their letters, so that "nc3" and "nc4" are alike but "nc3" and "gid3" are
      // not.
      for (const char c : word) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!is_digit || !pattern.ends_with('#')) pattern += is_digit ? '#' : c;
      }
    }
    at = end;
  }
  return pattern;
}

void FoldedLines::Add(std::string line) {
  // Without folding every line has a pattern of its own.
  const auto [known, is_new] = group_of_.try_emplace(
      fold_ ? PatternOf(line) : std::to_string(groups_.size()), groups_.size());
  if (is_new) groups_.emplace_back();
  Group& group = groups_[known->second];
  if (++group.count == 1) group.line = std::move(line);
}

std::string FoldedLines::Format() const {
  std::string text;
  for (const Group& group : groups_) {
    text += group.line;
    if (group.count > 1) text += fmt::format(" (and {} more like this)", group.count - 1);
    text += '\n';
  }
  return text;
}

}  // namespace neurontrace::cli
