// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

// The options in effect, for --validate-config, the log of a reload, and /statusz. Pure functions.
namespace neurontrace {

// The value of each option of a program as text, by its long name without dashes: as given on the
// command line, in the environment or in a file, else its default. Several values are joined by
// commas.
using EffectiveOptions = std::map<std::string, std::string>;

// Returns the values of a parsed app, without options that only print something.
EffectiveOptions TextsOf(const CLI::App& app);

// Returns the text that --validate-config prints for a valid configuration: one line for each
// option that has a value.
std::string DescribeOptions(const std::string& program, const EffectiveOptions& texts);

// An option whose value differs between two configurations.
struct OptionChange {
  std::string name;
  std::string before;
  std::string after;

  friend bool operator==(const OptionChange&, const OptionChange&) = default;
};
// Returns the changes, sorted by name. Pure.
std::vector<OptionChange> ChangesBetween(const EffectiveOptions& before,
                                         const EffectiveOptions& after);

}  // namespace neurontrace
