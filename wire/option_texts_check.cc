// SPDX-License-Identifier: Apache-2.0
#include "wire/option_texts_check.h"

#include <CLI/CLI.hpp>
#include <string>

#include "base/clean_text.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kShownValueBytesMax = 200;

absl::Status CheckOption(const CLI::Option& option, const std::set<std::string_view>& paths) {
  const std::string name = option.get_single_name();
  if (paths.contains(name)) return absl::OkStatus();
  for (const std::string& value : option.results()) {
    if (IsUtf8Text(value)) continue;
    return InvalidArgument("{}{} '{}' is not UTF-8: write it in UTF-8, or leave it out",
                           option.get_positional() ? "" : "--", name,
                           CleanText(value, kShownValueBytesMax));
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

absl::Status CheckOptionTexts(const CLI::App& app, const std::set<std::string_view>& paths) {
  for (const CLI::Option* const option : app.get_options()) {
    RETURN_IF_ERROR(CheckOption(*option, paths));
  }
  for (const CLI::App* const command : app.get_subcommands()) {
    RETURN_IF_ERROR(CheckOptionTexts(*command, paths));
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
