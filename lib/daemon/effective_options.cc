// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/effective_options.h"

#include <CLI/CLI.hpp>
#include <set>
#include <string_view>

namespace neurontrace {
namespace {

// Returns an option's values, or its default if it was not given.
std::string TextOf(const CLI::Option& option) {
  if (option.count() == 0) return option.get_default_str();
  std::string text;
  for (const std::string& result : option.results()) {
    if (!text.empty()) text += ',';
    text += result;
  }
  return text;
}

}  // namespace

EffectiveOptions TextsOf(const CLI::App& app) {
  // Options without a value that is in effect while the program runs.
  static const std::set<std::string_view> kNotSettings = {"help", "help-all", "version", "config",
                                                          "validate-config"};
  EffectiveOptions texts;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      // Of `--host-samples,!--no-host-samples` the first name is the option's.
      if (kNotSettings.count(name) == 0) texts[name] = TextOf(*option);
      break;
    }
  }
  return texts;
}

std::string DescribeOptions(const std::string& program, const EffectiveOptions& texts) {
  std::string lines = program + ": the configuration is valid\n";
  for (const auto& [name, text] : texts) {
    if (!text.empty()) lines += "  " + name + " = " + text + "\n";
  }
  return lines;
}

std::vector<OptionChange> ChangesBetween(const EffectiveOptions& before,
                                         const EffectiveOptions& after) {
  std::vector<OptionChange> changes;
  for (const auto& [name, text] : after) {
    // An option that the old configuration does not know had no value.
    const auto it = before.find(name);
    const std::string was = it == before.end() ? "" : it->second;
    if (was != text) changes.push_back({name, was, text});
  }
  return changes;
}

}  // namespace neurontrace
