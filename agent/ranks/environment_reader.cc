// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/environment_reader.h"

#include <fmt/format.h>

#include <charconv>

namespace neurontrace {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<int64_t> ParseNumber(std::string_view text) {
  text = Trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < 0 || value > EnvironmentReader::kNumberMax) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> EnvironmentReader::Number(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const auto value = ParseNumber(*text);
  if (!value) Warn(name, *text, "a number from 0");
  return value;
}

std::optional<int64_t> EnvironmentReader::Count(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const auto value = ParseNumber(*text);
  if (value && *value > 0) return value;
  Warn(name, *text, "a number from 1");
  return std::nullopt;
}

std::vector<int64_t> EnvironmentReader::Numbers(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return {};
  std::vector<int64_t> values;
  std::string_view rest = *text;
  for (;;) {
    const size_t comma = rest.find(',');
    const auto value = ParseNumber(rest.substr(0, comma));
    if (!value || values.size() == kListEntriesMax) {
      Warn(name, *text, "a comma-separated list of device counts");
      return {};
    }
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<int64_t> EnvironmentReader::FirstOfRange(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const auto value = ParseNumber(std::string_view(*text).substr(0, text->find_first_of(",-")));
  if (!value) Warn(name, *text, "a list of cores such as 0-3");
  return value;
}

const std::string* EnvironmentReader::Find(std::string_view name) const {
  const auto it = environment_.find(name);
  // Job scripts often export variables that are empty; that is no claim.
  return it == environment_.end() || Trim(it->second).empty() ? nullptr : &it->second;
}

void EnvironmentReader::Warn(std::string_view name, std::string_view value,
                             std::string_view expected) const {
  constexpr size_t kShownBytesMax = 64;
  std::string warning =
      fmt::format("{}={}{} is ignored: it should be {}", name, value.substr(0, kShownBytesMax),
                  value.size() > kShownBytesMax ? "…" : "", expected);
  for (const std::string& known : warnings_) {
    if (known == warning) return;
  }
  warnings_.push_back(std::move(warning));
}

}  // namespace neurontrace
