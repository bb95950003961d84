// SPDX-License-Identifier: Apache-2.0
#include "cli/help_formatter.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace neurontrace::cli {
namespace {

// The column in which descriptions begin, and the greatest width of a line.
constexpr size_t kColumn = 30;
constexpr size_t kWidth = 96;

}  // namespace

std::string HelpLine(std::string_view left, std::string_view text) {
  std::string line = fmt::format("  {}", left);
  std::string out;
  if (text.empty()) return line + "\n";
  // A name that does not fit has a line of its own, with its description below.
  if (line.size() + 1 > kColumn) {
    out = line + "\n";
    line.clear();
  }
  line.resize(kColumn, ' ');
  std::istringstream words{std::string(text)};
  bool is_first = true;
  for (std::string word; words >> word; is_first = false) {
    if (!is_first && line.size() + 1 + word.size() > kWidth) {
      out += line + "\n";
      line.assign(kColumn, ' ');
    } else if (!is_first) {
      line += ' ';
    }
    line += word;
  }
  return out + line + "\n";
}

std::string BrokenLines(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string line(text.substr(0, end));
    const size_t indent = std::min(line.find_first_not_of(' '), line.size());
    while (line.size() > kWidth) {
      const size_t blank = line.rfind(' ', kWidth);
      // A word that is longer than the line stays whole, as it may be a command to copy.
      if (blank == std::string::npos || blank <= indent) break;
      out += line.substr(0, blank) + "\n";
      line = std::string(indent, ' ') + line.substr(blank + 1);
    }
    out += line;
    if (end < text.size()) out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string HelpFormatter::make_footer(const CLI::App* command) const {
  return BrokenLines(CLI::Formatter::make_footer(command));
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return HelpLine(make_option_name(option, is_positional) + make_option_opts(option),
                  make_option_desc(option));
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return HelpLine(command->get_display_name(), command->get_description());
}

}  // namespace neurontrace::cli
