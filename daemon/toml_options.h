// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <string>
#include <vector>

namespace neurontrace {

// Reads a file of options as TOML 1.0 for CLI11, whose own reader takes any text for some value:
// one key for each option. Strings, numbers and true or false; an array for an option that may be
// given several times; a table for one of the type name TABLE, which gets it as WriteToml's text.
// Whatever else there is, and a value that its option refuses, is a CLI::ConfigError that names the
// file, the line and the column; so is a file that cannot be read
// or is empty, as one is that was cut off while it was written.
class TomlOptions final : public CLI::Config {
 public:
  // `app` owns this and has the option --config.
  explicit TomlOptions(CLI::App& app) : app_(app) {}

  // Gives the options that the command line does not set their values, and returns nothing that is
  // left to do.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // No program writes such a file.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  CLI::App& app_;
};

}  // namespace neurontrace
