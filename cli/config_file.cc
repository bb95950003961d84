// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <algorithm>
#include <cstdlib>

#include "lib/base/clean_text.h"
#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/base/toml_file.h"

namespace neurontrace::cli {
namespace {

// A larger file is refused: it is no file of options.
constexpr size_t kFileBytesMax = 1u << 20;
constexpr size_t kShownKeyBytesMax = 256;

// Returns the text of a file; "" if it does not exist and does not have to.
absl::StatusOr<std::string> ReadFile(const ConfigPlace& place) {
  absl::StatusOr<std::string> text = ReadSmallFile(place.path, kFileBytesMax);
  if (text.ok()) return text;
  // A file that exists and cannot be read may contain values on which the user relies, so it must
  // not be skipped.
  if (absl::IsNotFound(text.status()) && !place.must_exist) return std::string();
  return FailedPrecondition("{}{}", std::string(text.status().message()),
                            place.must_exist ? "; NEURONTRACE_CONFIG names it" : "");
}

// Returns the text for CLI11's default_val. Several values have the form "[a,b]", in which CLI11
// prints and parses them.
std::string DefaultText(const TomlNode& value) {
  if (value.is_scalar()) return value.text;
  std::string text;
  for (const TomlNode& one : value.children) text += (text.empty() ? "" : ",") + one.text;
  return fmt::format("[{}]", text);
}

// Sets the default of the option that a key names. Returns an error message without the position in
// the file, or "".
std::string SetDefault(CLI::App& command, const TomlNode& value) {
  CLI::Option* const option = command.get_option_no_throw("--" + value.key);
  const std::string path = PathOf(command);
  if (option == nullptr || !IsConfigurable(*option)) {
    return fmt::format("{} no option '{}'; see neurontrace {}--help",
                       path.empty() ? "there is" : fmt::format("'{}' has", path),
                       CleanText(value.key, kShownKeyBytesMax), path.empty() ? "" : path + " ");
  }
  // An array is accepted only for options that may be repeated.
  const bool is_array = value.kind == TomlKind::kArray && option->get_items_expected_max() > 1 &&
                        std::all_of(value.children.begin(), value.children.end(),
                                    [](const TomlNode& one) { return one.is_scalar(); });
  if (!value.is_scalar() && !is_array) {
    return fmt::format("{} must be a quoted string, a number, true or false", value.key);
  }
  // An empty value would mean the same as an absent option in some commands and nothing in others,
  // so it is refused.
  if ((value.is_scalar() ? value.text.empty() : value.children.empty()) &&
      option->get_expected_max() > 0) {
    return fmt::format("{} has no value; remove the line", value.key);
  }
  try {
    // CLI11 splits "[a,b]" only for options that take several values at once, so this is allowed
    // for the moment of the assignment.
    const bool takes_more = option->get_allow_extra_args();
    option->allow_extra_args(takes_more || is_array);
    option->default_val(DefaultText(value));
    option->allow_extra_args(takes_more);
    // CLI11 reports a refused value only by an exception.
  } catch (const CLI::Error& error) {
    return fmt::format("{} = {}: {}", value.key, WriteToml(value), error.what());
  }
  return "";
}

// Applies the values of a section to a command's options, and nested sections to its subcommands.
// Fails with INVALID_ARGUMENT at the first wrong line; values before it are in effect then.
absl::Status ApplyTable(CLI::App& command, const ConfigPlace& place, const TomlNode& table,
                        ConfigOrigins& origins) {
  for (const TomlNode& value : table.children) {
    std::string problem;
    if (value.kind == TomlKind::kTable) {
      const auto children = command.get_subcommands(
          [&value](const CLI::App* child) { return child->get_name() == value.key; });
      if (!children.empty()) {
        RETURN_IF_ERROR(ApplyTable(*children.front(), place, value, origins));
        continue;
      }
      const std::string path = PathOf(command);
      problem = fmt::format("unknown command '{}{}'", path.empty() ? "" : path + " ",
                            CleanText(value.key, kShownKeyBytesMax));
    } else {
      problem = SetDefault(command, value);
    }
    if (!problem.empty()) {
      return InvalidArgument("{}:{}:{}: {}", place.path, value.line, value.column, problem);
    }
    origins[command.get_option("--" + value.key)] = {place.label, place.path, value.line};
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<ConfigPlace> UsualConfigPlaces() {
  std::vector<ConfigPlace> places = {{"/etc/neurontrace/config", "system file"}};
  const auto variable = [](const char* name) {
    const char* const value = getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (getenv("NEURONTRACE_CONFIG") != nullptr) {
    if (const std::string named = variable("NEURONTRACE_CONFIG"); !named.empty()) {
      places.push_back({named, "user file", true});
    }
    return places;
  }
  const std::string home = variable("HOME");
  std::string base = variable("XDG_CONFIG_HOME");
  if (base.empty() && !home.empty()) base = home + "/.config";
  if (!base.empty()) places.push_back({base + "/neurontrace/config", "user file"});
  return places;
}

absl::Status ApplyConfig(CLI::App& app, const std::vector<ConfigPlace>& places,
                         ConfigOrigins& origins) {
  // Later places overwrite defaults and origins of earlier ones, so their order is the precedence.
  for (const ConfigPlace& place : places) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(place));
    ASSIGN_OR_RETURN(const TomlNode root, ParseToml(text, place.path, TomlSections::kNest));
    RETURN_IF_ERROR(ApplyTable(app, place, root, origins));
  }
  return absl::OkStatus();
}

bool IsConfigurable(const CLI::Option& option) {
  if (option.get_lnames().empty() || option.get_positional()) return false;
  const std::string& name = option.get_lnames().front();
  return name != "help" && name != "version";
}

std::string PathOf(const CLI::App& command) {
  if (command.get_parent() == nullptr) return "";
  const std::string before = PathOf(*command.get_parent());
  return before.empty() ? command.get_name() : before + " " + command.get_name();
}

}  // namespace neurontrace::cli
