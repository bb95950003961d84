// SPDX-License-Identifier: Apache-2.0
#include "daemon/toml_options.h"

#include <fmt/format.h>

#include <utility>

#include "base/clean_text.h"
#include "base/small_file.h"
#include "base/toml_file.h"
#include "daemon/config_options.h"
#include "trace/config_limits.h"

namespace neurontrace {
namespace {

// The values as they would be typed; what is wrong with one is returned, empty: nothing.
std::string ToTexts(const TomlNode& node, bool takes_tables, std::vector<std::string>& texts) {
  const TomlNode* const begin = node.kind == TomlKind::kArray ? node.children.data() : &node;
  const size_t count = node.kind == TomlKind::kArray ? node.children.size() : 1;
  for (const TomlNode* value = begin; value != begin + count; ++value) {
    const bool is_table = takes_tables && value->kind == TomlKind::kTable;
    if (!is_table && !value->is_scalar()) {
      return "the value is a string in quotes, a number, true or false, or an array of them";
    }
    texts.push_back(is_table ? WriteToml(*value) : value->text);
  }
  return "";
}

// Gives the option the value as if it were typed. What is wrong; empty: nothing.
std::string SetOption(CLI::App& app, const TomlNode& key) {
  const std::string shown = CleanText(key.key, limits::kConfigKeyBytesMax);
  CLI::Option* const option = app.get_option_no_throw("--" + key.key);
  const bool takes_tables = option != nullptr && option->get_type_name() == "TABLE";
  const bool is_section =
      key.kind == TomlKind::kTable || (key.kind == TomlKind::kArray && !key.children.empty() &&
                                       key.children[0].kind == TomlKind::kTable);
  if (is_section && !takes_tables) {
    return fmt::format("[{}] begins a section, and sections are not allowed here", shown);
  }
  if (option == nullptr) return shown + " is not an option; see --help";
  if (!option->get_configurable()) return shown + " has no meaning in a file of options";
  std::vector<std::string> texts;
  if (std::string problem = ToTexts(key, takes_tables, texts); !problem.empty()) {
    return fmt::format("{}: {}", shown, problem);
  }
  if (!option->empty() || texts.empty())
    return "";  // the command line has said it, or nothing is said
  const bool is_flag = option->get_expected_min() == 0;
  if (is_flag && key.kind != TomlKind::kBoolean) {
    return fmt::format("{} is true or false, without quotes", shown);
  }
  try {  // CLI11 has no other way of saying it
    if (is_flag) {
      option->add_result(option->get_flag_value(key.key, texts.front()));
    } else {
      option->add_result(texts);
    }
    option->run_callback();
  } catch (const CLI::Error& error) {
    return WordsOf(error);
  }
  return "";
}

}  // namespace

// Reads the file itself: where a disk fails, the iterators of a stream throw.
std::vector<CLI::ConfigItem> TomlOptions::from_config(std::istream&) const {
  const std::string path = ConfigFileOf(app_);
  const auto text = ReadSmallFile(path, limits::kConfigFileBytesMax);
  if (!text.ok()) throw CLI::ConfigError(std::string(text.status().message()));
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    throw CLI::ConfigError(path +
                           ": the file is empty. Was it cut off while it was written? A file "
                           "without options has at least a comment");
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

}  // namespace neurontrace
