// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks/environment_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace neurontrace {
namespace {

// Variables that job scripts assemble often have blanks at their ends.
std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns a decimal number from 0 to kNumberMax. Signs, other bases and trailing text give nothing.
std::optional<int64_t> ParseNumber(std::string_view text) {
  text = Trim(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  // The limit keeps products of ranks and core counts within 64 bits.
  if (value < 0 || value > EnvironmentReader::kNumberMax) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> EnvironmentReader::Number(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const auto value = ParseNumber(*text);
  if (!value) Warn(name, *text, "a whole number of at least 0");
  return value;
}

std::optional<int64_t> EnvironmentReader::Count(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  const auto value = ParseNumber(*text);
  if (value && *value > 0) return value;
  Warn(name, *text, "a whole number of at least 1");
  return std::nullopt;
}

std::optional<int64_t> EnvironmentReader::FirstCount(
    std::initializer_list<const char*> names) const {
  for (const char* name : names) {
    // An invalid value ends the search: it is reported, and a worse variable must not hide it.
    if (Has(name)) return Count(name);
  }
  return std::nullopt;
}

std::optional<int64_t> EnvironmentReader::CountIfNumber(std::string_view name) const {
  const auto value = ParseNumber(Text(name));
  return value && *value > 0 ? value : std::nullopt;
}

std::string_view EnvironmentReader::Text(std::string_view name) const {
  const std::string* text = Find(name);
  return text == nullptr ? std::string_view() : Trim(*text);
}

std::vector<int64_t> EnvironmentReader::Numbers(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return {};
  std::vector<int64_t> values;
  std::string_view rest = *text;
  for (;;) {
    const size_t comma = rest.find(',');
    const auto value = ParseNumber(rest.substr(0, comma));
    // One invalid entry invalidates the list: positions in it are process indexes.
    if (!value || values.size() == kListEntriesMax) {
      Warn(name, *text, "a comma-separated list of device counts");
      return {};
    }
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<int64_t> EnvironmentReader::CoreList(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return {};
  const auto malformed = [&] {
    Warn(name, *text, "a list of different cores such as 0,2,4-5");
    return std::vector<int64_t>();
  };
  // Order is kept: position n in the list is core n of the process.
  std::vector<int64_t> cores;
  std::set<int64_t> seen;
  std::string_view rest = *text;
  for (;;) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t dash = item.find('-');
    const auto first = ParseNumber(item.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : ParseNumber(item.substr(dash + 1));
    // The width of a range is checked before it is expanded: "0-2000000000" must not cost memory.
    if (!first || !last || *last < *first || *last - *first >= int64_t{kCoreListMax}) {
      return malformed();
    }
    for (int64_t core = *first; core <= *last; ++core) {
      if (cores.size() == kCoreListMax || !seen.insert(core).second) return malformed();
      cores.push_back(core);
    }
    if (comma == std::string_view::npos) return cores;
    rest.remove_prefix(comma + 1);
  }
}

std::optional<int64_t> EnvironmentReader::LargestCount(std::string_view name) const {
  const std::string* text = Find(name);
  if (text == nullptr) return std::nullopt;
  std::optional<int64_t> largest;
  std::string_view rest = *text;
  for (;;) {
    const size_t comma = rest.find(',');
    // Slurm writes "4(x2),3" for 4 tasks on each of two nodes and 3 on the last (srun(1),
    // SLURM_TASKS_PER_NODE).
    const auto count = ParseNumber(rest.substr(0, std::min(comma, rest.find('('))));
    if (!count) {
      Warn(name, *text, "a list of task counts such as 4(x2),3");
      return std::nullopt;
    }
    largest = std::max(largest.value_or(0), *count);
    if (comma == std::string_view::npos) return largest;
    rest.remove_prefix(comma + 1);
  }
}

const std::string* EnvironmentReader::Find(std::string_view name) const {
  const auto it = environment_.find(name);
  // Job scripts often export empty variables, which state nothing.
  return it == environment_.end() || Trim(it->second).empty() ? nullptr : &it->second;
}

void EnvironmentReader::Warn(std::string_view name, std::string_view value,
                             std::string_view expected) const {
  // Warnings travel to the aggregator and are shown in tables. A value may be very long.
  constexpr size_t kShownBytesMax = 64;
  std::string warning =
      fmt::format("{}={}{} is ignored: it should be {}", name, value.substr(0, kShownBytesMax),
                  value.size() > kShownBytesMax ? "…" : "", expected);
  // Variables are read several times, for different launchers.
  for (const std::string& known : warnings_) {
    if (known == warning) return;
  }
  warnings_.push_back(std::move(warning));
}

}  // namespace neurontrace
