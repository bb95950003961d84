// SPDX-License-Identifier: Apache-2.0
#include "lib/triggers/verdict_patterns.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

// Returns the items without blanks around them.
std::vector<std::string_view> ItemsOf(std::string_view patterns) {
  std::vector<std::string_view> items;
  while (true) {
    const size_t comma = std::min(patterns.find(','), patterns.size());
    std::string_view item = patterns.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    items.push_back(item);
    if (comma == patterns.size()) return items;
    patterns.remove_prefix(comma + 1);
  }
}

bool MatchesItem(std::string_view item, std::string_view kind) {
  if (item.ends_with('*')) return kind.starts_with(item.substr(0, item.size() - 1));
  return item == kind;
}

}  // namespace

absl::Status CheckVerdictPatterns(std::string_view patterns) {
  if (patterns.size() > limits::kTriggerVerdictsBytesMax) {
    return InvalidArgument("is longer than {} bytes", limits::kTriggerVerdictsBytesMax);
  }
  for (const std::string_view item : ItemsOf(patterns)) {
    const bool is_known =
        !item.empty() && std::ranges::any_of(kVerdictNames, [item](std::string_view kind) {
          return MatchesItem(item, kind);
        });
    if (is_known) continue;
    return InvalidArgument("has '{}', which matches no kind of verdict; use some of {}, or hang-*",
                           CleanText(item, limits::kTriggerVerdictsBytesMax),
                           fmt::join(kVerdictNames, ", "));
  }
  return absl::OkStatus();
}

bool MatchesVerdict(std::string_view patterns, std::string_view kind) {
  return std::ranges::any_of(ItemsOf(patterns),
                             [kind](std::string_view item) { return MatchesItem(item, kind); });
}

}  // namespace neurontrace
