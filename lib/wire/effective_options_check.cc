// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/effective_options_check.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kShownValueBytesMax = 200;

// Checks all values of one option. Fails with INVALID_ARGUMENT, naming it as the documentation
// does.
absl::Status CheckOption(const CLI::Option& option, const std::set<std::string_view>& paths) {
  const std::string name = option.get_single_name();
  // File names on Linux are bytes without an encoding.
  if (paths.contains(name)) return absl::OkStatus();
  // Of several names the last one is the documented one.
  const std::string shown = option.get_lnames().empty() ? name : "--" + option.get_lnames().back();
  for (const std::string& value : option.results()) {
    const bool is_utf8 = IsUtf8Text(value);
    if (is_utf8 && std::none_of(value.begin(), value.end(), IsControl)) continue;
    return InvalidArgument("{} '{}' {}", shown, CleanText(value, kShownValueBytesMax),
                           is_utf8 ? "has control characters; remove them"
                                   : "is not UTF-8; write it in UTF-8 or remove it");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsUtf8Text(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = Utf8SequenceBytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// The first option with a wrong value is reported, those of the program before those of its
// commands.
absl::Status CheckEffectiveOptions(const CLI::App& app, const std::set<std::string_view>& paths) {
  for (const CLI::Option* const option : app.get_options()) {
    RETURN_IF_ERROR(CheckOption(*option, paths));
  }
  // get_subcommands without an argument returns the commands that were given.
  for (const CLI::App* const command : app.get_subcommands()) {
    RETURN_IF_ERROR(CheckEffectiveOptions(*command, paths));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
