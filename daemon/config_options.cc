// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_options.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/clean_text.h"
#include "base/quantity.h"
#include "daemon/toml_options.h"
#include "trace/config_limits.h"

namespace neurontrace {
namespace {

// Before CLI11 opens it, which would wait for the writer of a FIFO.
std::string CheckFile(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) return path + " is a directory, not a file of options";
  if (!S_ISREG(facts.st_mode)) return path + " is not a regular file";
  if (access(path.c_str(), R_OK) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  return "";
}

std::string FailureMessage(const CLI::App*, const CLI::Error& error) {
  return fmt::format("{}\nRun with --help for more information.\n", WordsOf(error));
}

}  // namespace

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
               "if they are, 2 if not")
      ->configurable(false);
  app.config_formatter(std::make_shared<TomlOptions>(app));
  app.failure_message(FailureMessage);
  CLI::Option* const option = app.set_config(
      "--config", "",
      about_file +
          ". It is read again when it changes, and on SIGHUP: what can be changed without "
          "a restart is");
  option->check(CheckFile);
  return *option;
}

CLI::Validator ByteSize() {
  return CLI::Validator(
      [](std::string& text) {
        const auto bytes = ParseByteSize(text);
        if (!bytes.ok()) return std::string(bytes.status().message());
        text = std::to_string(*bytes);
        return std::string();
      },
      "SIZE");
}

std::string WordsOf(const CLI::Error& error) {
  return CleanText(error.what(), limits::kConfigWordsBytesMax);
}

std::string ConfigFileOf(const CLI::App& app) {
  const CLI::Option* const option = app.get_config_ptr();
  return option == nullptr || option->count() == 0 ? "" : option->as<std::string>();
}

}  // namespace neurontrace
