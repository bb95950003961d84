// SPDX-License-Identifier: Apache-2.0
#include "daemon/toml_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clean_text.h"
#include "base/ini_text.h"
#include "base/small_file.h"
#include "daemon/config_options.h"
#include "trace/config_limits.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace neurontrace {
namespace {

struct FileKey {
  std::string name;
  const toml::node* node = nullptr;
  uint32_t line = 0;
};

[[noreturn]] void ThrowAt(const std::string& path, uint32_t line, const std::string& problem) {
  throw CLI::ConfigError(fmt::format("{}:{}: {}", path, line, problem));
}

// A scalar as the command line would have it; false: it is none that an option takes.
bool ToText(const toml::node& node, std::string& text) {
  if (const auto* const words = node.as_string()) {
    text = words->get();
  } else if (const auto* const number = node.as_integer()) {
    text = std::to_string(number->get());
  } else if (const auto* const truth = node.as_boolean()) {
    text = truth->get() ? "true" : "false";
  } else {
    return false;
  }
  return true;
}

// What is wrong; empty: nothing.
std::string ToTexts(const toml::node& node, std::vector<std::string>& texts) {
  constexpr char kWanted[] =
      "the value is a string in quotes, a whole number, true or false, or an array of them";
  std::string text;
  if (ToText(node, text)) {
    texts.push_back(std::move(text));
    return "";
  }
  const toml::array* const array = node.as_array();
  if (array == nullptr) return kWanted;
  for (const toml::node& element : *array) {
    if (!ToText(element, text)) return kWanted;
    texts.push_back(text);
  }
  return "";
}

// Gives the option the value as if it were typed. What is wrong; empty: nothing.
std::string SetOption(CLI::App& app, const FileKey& key) {
  const std::string shown = CleanText(key.name, limits::kConfigKeyBytesMax);
  if (key.node->is_table() || key.node->is_array_of_tables()) {
    return fmt::format("[{}] begins a section, and sections are not allowed here", shown);
  }
  CLI::Option* const option = app.get_option_no_throw("--" + key.name);
  if (option == nullptr) return shown + " is not an option; see --help";
  if (!option->get_configurable()) return shown + " has no meaning in a file of options";
  std::vector<std::string> texts;
  if (std::string problem = ToTexts(*key.node, texts); !problem.empty()) {
    return fmt::format("{}: {}", shown, problem);
  }
  if (!option->empty() || texts.empty())
    return "";  // the command line has said it, or nothing is said
  const bool is_flag = option->get_expected_min() == 0;
  if (is_flag && (texts.size() != 1 || !key.node->is_boolean())) {
    return fmt::format("{} is true or false, without quotes", shown);
  }
  try {  // CLI11 has no other way of saying it
    if (is_flag) {
      option->add_result(option->get_flag_value(key.name, texts.front()));
    } else {
      option->add_result(texts);
    }
    option->run_callback();
  } catch (const CLI::Error& error) {
    return WordsOf(error);
  }
  return "";
}

// What to write where the line that TOML cannot read has a string without quotes, which most people
// write first; else empty.
std::string WayOut(std::string_view text, uint32_t line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return "";
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return "";
  const std::string_view key = TrimmedIni(text.substr(0, equals));
  const std::string_view value = TrimmedIni(text.substr(equals + 1));
  if (key.size() + value.size() > limits::kConfigKeyBytesMax) return "";  // it would hide the error
  if (value.empty() || value.find_first_of("\"'[{#") != std::string_view::npos) return "";
  return CleanText(fmt::format(": strings take quotes: {} = \"{}\"", key, value),
                   limits::kConfigWordsBytesMax);
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
  const toml::parse_result parsed = toml::parse(*text, path);
  if (!parsed) {
    const uint32_t line = parsed.error().source().begin.line;
    ThrowAt(path, line,
            CleanText(parsed.error().description(), limits::kConfigWordsBytesMax) +
                WayOut(*text, line));
  }
  std::vector<FileKey> keys;
  for (const auto& [name, node] : parsed.table()) {
    keys.push_back({std::string(name.str()), &node, name.source().begin.line});
  }
  // As people read it, so that the first mistake is the one that is told.
  std::stable_sort(keys.begin(), keys.end(),
                   [](const FileKey& a, const FileKey& b) { return a.line < b.line; });
  for (const FileKey& key : keys) {
    if (const std::string problem = SetOption(app_, key); !problem.empty()) {
      ThrowAt(path, key.line, problem);
    }
  }
  return {};
}

}  // namespace neurontrace
