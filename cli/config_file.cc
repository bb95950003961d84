// SPDX-License-Identifier: Apache-2.0
#include "cli/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/clean_text.h"
#include "base/status.h"
#include "base/unique_fd.h"
#include "wire/option_texts_check.h"

namespace neurontrace::cli {
namespace {

constexpr size_t kFileBytesMax = 1u << 20;

std::string Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

// A quoted value is what stands between the quotes; else a comment may follow behind a blank.
absl::StatusOr<std::string> ValueOf(std::string_view text, const std::string& where) {
  const std::string value = Trimmed(text);
  if (value.starts_with('"')) {
    const size_t end = value.find('"', 1);
    if (end == std::string::npos) return InvalidArgument("{}: a quote is not closed", where);
    const std::string rest = Trimmed(std::string_view(value).substr(end + 1));
    if (!rest.empty() && rest[0] != '#' && rest[0] != ';') {
      return InvalidArgument("{}: '{}' follows the quoted value", where, rest);
    }
    return value.substr(1, end - 1);
  }
  for (const char* const mark : {" #", " ;", "\t#", "\t;"}) {
    if (const size_t at = value.find(mark); at != std::string::npos)
      return Trimmed(value.substr(0, at));
  }
  return value;
}

CLI::App* FindCommand(CLI::App& app, const std::string& section) {
  CLI::App* command = &app;
  std::istringstream words(section);
  for (std::string word; words >> word;) {
    const auto children = command->get_subcommands(
        [&word](const CLI::App* child) { return child->get_name() == word; });
    if (children.empty()) return nullptr;
    command = children.front();
  }
  return command;
}

absl::StatusOr<std::string> ReadFile(const ConfigPlace& place) {
  // What is there and cannot be read may hold something that somebody relies on.
  const UniqueFd file(open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR) && !place.must_exist) {
    return std::string();
  }
  struct stat about = {};
  if (file.valid() && fstat(file.get(), &about) == 0 &&
      (S_ISFIFO(about.st_mode) || S_ISDIR(about.st_mode))) {
    return FailedPrecondition("{} is not a regular file", place.path);
  }
  std::string text(kFileBytesMax + 1, '\0');
  size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t n =
        file.valid() ? read(file.get(), text.data() + bytes, text.size() - bytes) : -1;
    if (n == 0) break;
    if (n < 0 && file.valid() && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      return FailedPrecondition("{} cannot be read: {}{}", place.path, strerror(error),
                                place.must_exist ? "; NEURONTRACE_CONFIG names it" : "");
    }
    bytes += static_cast<size_t>(n);
  }
  text.resize(bytes);
  if (text.size() > kFileBytesMax) {
    return InvalidArgument("{} is larger than {} bytes", place.path, kFileBytesMax);
  }
  return text;
}

absl::Status ApplyLine(CLI::App& app, const ConfigPlace& place, const ConfigLine& line,
                       ConfigOrigins& origins) {
  const std::string where = fmt::format("{}:{}", place.path, line.number);
  CLI::App* const command = FindCommand(app, line.section);
  if (command == nullptr) {
    return InvalidArgument("{}: there is no command '{}'", where, line.section);
  }
  CLI::Option* const option = command->get_option_no_throw("--" + line.key);
  if (option == nullptr || !IsConfigurable(*option)) {
    return InvalidArgument(
        "{}: {} no option '{}': see neurontrace {}--help", where,
        line.section.empty() ? "there is" : fmt::format("'{}' has", line.section), line.key,
        line.section.empty() ? "" : line.section + " ");
  }
  if (line.value.empty() && option->get_expected_max() > 0) {
    return InvalidArgument("{}: {} has no value: leave the line out", where, line.key);
  }
  try {
    option->default_val(line.value);
  } catch (const CLI::Error& error) {  // CLI11 has no other way of saying it
    return InvalidArgument("{}: {} = {}: {}", where, line.key, line.value,
                           std::string(error.what()));
  }
  origins[option] = {place.label, place.path, line.number};
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

absl::StatusOr<std::vector<ConfigLine>> ParseConfig(std::string_view text,
                                                    const std::string& path) {
  std::vector<ConfigLine> lines;
  std::string section;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string where = fmt::format("{}:{}", path, number);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const size_t close = line.find(']');
      if (close == std::string::npos) return InvalidArgument("{}: a section ends with ]", where);
      const std::string rest = Trimmed(std::string_view(line).substr(close + 1));
      if (!rest.empty() && rest[0] != '#' && rest[0] != ';') {
        return InvalidArgument("{}: '{}' follows the section: it wants a line of its own", where,
                               rest);
      }
      section = Trimmed(std::string_view(line).substr(1, close - 1));
      continue;
    }
    const size_t equals = line.find('=');
    if (equals == std::string::npos) {
      return InvalidArgument("{}: '{}' is no `key = value`", where, line);
    }
    std::string key = Trimmed(std::string_view(line).substr(0, equals));
    key.erase(0, std::min(key.find_first_not_of('-'), key.size()));  // as on the command line
    ASSIGN_OR_RETURN(std::string value, ValueOf(std::string_view(line).substr(equals + 1), where));
    if (!IsUtf8Text(value)) {
      return InvalidArgument("{}: {} has a value that is not UTF-8", where,
                             CleanText(key, key.size()));
    }
    lines.push_back({section, std::move(key), std::move(value), number});
  }
  return lines;
}

absl::Status ApplyConfig(CLI::App& app, const std::vector<ConfigPlace>& places,
                         ConfigOrigins& origins) {
  for (const ConfigPlace& place : places) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(place));
    ASSIGN_OR_RETURN(const std::vector<ConfigLine> lines, ParseConfig(text, place.path));
    for (const ConfigLine& line : lines) RETURN_IF_ERROR(ApplyLine(app, place, line, origins));
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
