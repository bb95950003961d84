// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace neurontrace::cli {

// CLI11's help, wrapped at the width of a terminal. Used by the main thread.
class HelpFormatter final : public CLI::Formatter {
 public:
  // Return the lines for one option, one subcommand, or the text at the end.
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;
};

// Returns `text` with long lines continued below at the same indentation.
std::string BrokenLines(std::string_view text);

// Returns `left` with `text` in a column beside it, or below if `left` is too long. Ends in a
// newline.
std::string HelpLine(std::string_view left, std::string_view text);

}  // namespace neurontrace::cli
