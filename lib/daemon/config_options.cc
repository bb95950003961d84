// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/config_options.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstring>
#include <istream>
#include <memory>
#include <utility>
#include <vector>

#include "lib/base/clean_text.h"
#include "lib/base/quantity.h"
#include "lib/base/small_file.h"
#include "lib/base/toml_file.h"
#include "lib/trace/daemon_limits.h"

namespace neurontrace {
namespace {

// Appends the node's values to `texts` as they would be typed: one, or those of an array. Returns
// an error message, or "".
std::string ToTexts(const TomlNode& node, bool takes_tables, std::vector<std::string>& texts) {
  const TomlNode* const begin = node.kind == TomlKind::kArray ? node.children.data() : &node;
  const size_t count = node.kind == TomlKind::kArray ? node.children.size() : 1;
  for (const TomlNode* value = begin; value != begin + count; ++value) {
    const bool is_table = takes_tables && value->kind == TomlKind::kTable;
    if (!is_table && !value->is_scalar()) {
      return "the value must be a quoted string, a number, true or false, or an array of these";
    }
    texts.push_back(is_table ? WriteToml(*value) : value->text);
  }
  return "";
}

// Sets an option as if the value had been typed. Returns an error message without the position in
// the file, or "". Options of the command line keep their values.
std::string SetOption(CLI::App& app, const TomlNode& key) {
  const std::string shown = CleanText(key.key, limits::kConfigKeyBytesMax);
  CLI::Option* const option = app.get_option_no_throw("--" + key.key);
  const bool takes_tables = option != nullptr && option->get_type_name() == "TABLE";
  const bool is_section =
      key.kind == TomlKind::kTable || (key.kind == TomlKind::kArray && !key.children.empty() &&
                                       key.children[0].kind == TomlKind::kTable);
  if (is_section && !takes_tables) {
    return fmt::format("unexpected section [{}]: options must be at top level", shown);
  }
  if (option == nullptr) return shown + " is not an option; see --help";
  if (!option->get_configurable()) return shown + " cannot be set in a configuration file";
  std::vector<std::string> texts;
  if (std::string problem = ToTexts(key, takes_tables, texts); !problem.empty()) {
    return fmt::format("{}: {}", shown, problem);
  }
  // The command line has priority over the file; an empty array sets nothing.
  if (!option->empty() || texts.empty()) return "";
  // A flag expects no value on the command line, and a Boolean in a file.
  const bool is_flag = option->get_expected_min() == 0;
  if (is_flag && key.kind != TomlKind::kBoolean) {
    return fmt::format("{} must be true or false, without quotes", shown);
  }
  // CLI11 reports a refused value only by an exception.
  try {
    if (is_flag) {
      option->add_result(option->get_flag_value(key.key, texts.front()));
    } else {
      option->add_result(texts);
    }
    option->run_callback();
  } catch (const CLI::Error& error) {
    return ToString(error);
  }
  return "";
}

// Reads a file of options as TOML 1.0 for CLI11, whose own reader accepts any text as a value. The
// file has one key for each option: strings, numbers, true or false; an array for an option that
// may be given several times; a table for an option with the type name TABLE, which receives it as
// WriteToml's text. Any other content, and a value that its option refuses, is a CLI::ConfigError
// naming file, line and column. So is a file that cannot be read or is empty, as one is that was
// truncated while it was written.
class TomlOptions final : public CLI::Config {
 public:
  // `app` owns this and has the option --config.
  explicit TomlOptions(CLI::App& app) : app_(app) {}

  // Sets the options that the command line does not set, and returns an empty list, as CLI11 has
  // nothing left to do.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;
  // No program writes such a file.
  std::string to_config(const CLI::App*, bool, bool, std::string) const override { return ""; }

 private:
  CLI::App& app_;
};

// Reads the file itself instead of the stream, whose iterators throw if the disk fails.
std::vector<CLI::ConfigItem> TomlOptions::from_config(std::istream&) const {
  const std::string path = ConfigFileOf(app_);
  const auto text = ReadSmallFile(path, limits::kConfigFileBytesMax);
  if (!text.ok()) throw CLI::ConfigError(std::string(text.status().message()));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    throw CLI::ConfigError(path +
                           ": the file is empty, perhaps truncated while it was written; a file "
                           "without options needs at least a comment");
  }
  const absl::StatusOr<TomlNode> root = ParseToml(*text, path);
  if (!root.ok()) throw CLI::ConfigError(std::string(root.status().message()));
  for (const TomlNode& key : root->children) {
    if (const std::string problem = SetOption(app_, key); !problem.empty()) {
      throw CLI::ConfigError(fmt::format("{}:{}:{}: {}", path, key.line, key.column, problem));
    }
  }
  return {};
}

// Returns an error message for a path that is no readable regular file, or "". Runs before CLI11
// opens the file, which would block for the writer of a FIFO.
std::string CheckFile(const std::string& path) {
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  if (S_ISDIR(facts.st_mode)) return path + " is a directory, not a configuration file";
  if (!S_ISREG(facts.st_mode)) return path + " is not a regular file";
  if (access(path.c_str(), R_OK) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  return "";
}

// Returns a parser's error as it is printed, with a hint.
std::string FailureMessage(const CLI::App*, const CLI::Error& error) {
  return fmt::format("{}\nRun with --help for more information.\n", ToString(error));
}

}  // namespace

void AddLogOptions(CLI::App& app, std::string& level, LogFormat& format) {
  app.add_option("--log-level", level, "Lowest level that is logged to stderr")
      ->check(CLI::IsMember({"debug", "info", "warn", "error"}))
      ->capture_default_str();
  // The variable is set by a function because CLI11 does not know the enumeration.
  app.add_option_function<std::string>(
         "--log-format",
         [&format](const std::string& word) {
           format = word == "json" ? LogFormat::kJson : LogFormat::kText;
         },
         "Log format: text, or json with one object per line")
      ->check(CLI::IsMember({"text", "json"}))
      ->default_str("text");
}

CLI::Option& AddConfigOptions(CLI::App& app, bool& validate, const std::string& about_file) {
  app.add_flag("--validate-config", validate,
               "Check all options and the files that they name, print the result, and exit with 0 "
               "if they are valid, 2 if not")
      ->configurable(false);
  app.config_formatter(std::make_shared<TomlOptions>(app));
  app.failure_message(FailureMessage);
  CLI::Option* const option = app.set_config("--config", "",
                                             about_file +
                                                 ". It is reloaded when it changes and on SIGHUP; "
                                                 "options that allow it change without a restart");
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

std::string ToString(const CLI::Error& error) {
  return CleanText(error.what(), limits::kConfigMessageBytesMax);
}

std::string ConfigFileOf(const CLI::App& app) {
  const CLI::Option* const option = app.get_config_ptr();
  return option == nullptr || option->count() == 0 ? "" : option->as<std::string>();
}

}  // namespace neurontrace
