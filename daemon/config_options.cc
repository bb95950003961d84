// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_options.h"

#include <CLI/CLI.hpp>
#include <string_view>

namespace neurontrace {

void AddLogOptions(CLI::App& app, std::string& level, LogFormat& format) {
  app.add_option("--log-level", level, "What is logged to stderr")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--log-format",
         [&format](const std::string& word) {
           format = word == "json" ? LogFormat::kJson : LogFormat::kText;
         },
         "How: text, for people, or json, an object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

CLI::Option& AddConfigOptions(CLI::App& app, bool& validate, const std::string& about_file) {
  app.add_flag("--validate-config", validate,
               "Look whether all options and the files that they name are good, say so, and end: 0 "
               "if they are, 2 if not");
  app.allow_config_extras(CLI::config_extras_mode::error);
  return *app.set_config(
      "--config", "",
      about_file +
          ". It is read again when it changes, and on SIGHUP: what can be changed without "
          "a restart is");
}

std::string WordsOf(const CLI::ParseError& error) {
  const std::string words = error.what();
  constexpr std::string_view kUnknownKey = "INI was not able to parse ";
  if (!words.starts_with(kUnknownKey)) return words;
  return words.substr(kUnknownKey.size()) + " is no option: --help names all";
}

std::string ConfigFileOf(const CLI::App& app) {
  const CLI::Option* const option = app.get_config_ptr();
  return option == nullptr || option->count() == 0 ? "" : option->as<std::string>();
}

}  // namespace neurontrace
