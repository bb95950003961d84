// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>

namespace neurontrace::cli {

// Help as CLI11 lays it out, but broken at the width of a terminal.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_footer(const CLI::App* command) const override;
};

// Lines that are too long go on below, at the same indentation.
std::string BrokenLines(std::string_view text);

// `left`, and `text` in a column of its own beside it, or below where it is too long. Ends in a
// newline.
std::string HelpLine(std::string_view left, std::string_view text);

}  // namespace neurontrace::cli
