// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace neurontrace {

// What each option of a program is, in text, by its long name without dashes: as given on the
// command line, in the environment or in a file, else its default. Several values have commas
// between them.
using EffectiveOptions = std::map<std::string, std::string>;

// Of an app that has parsed. Options that only print something are left out.
EffectiveOptions TextsOf(const CLI::App& app);

// For people, as --validate-config says it of what is good: an option a line, those with a value.
std::string DescribeOptions(const std::string& program, const EffectiveOptions& texts);

struct OptionChange {
  std::string name;
  std::string before;
  std::string after;

  friend bool operator==(const OptionChange&, const OptionChange&) = default;
};
// By name.
std::vector<OptionChange> ChangesBetween(const EffectiveOptions& before,
                                         const EffectiveOptions& after);

}  // namespace neurontrace
