// SPDX-License-Identifier: Apache-2.0
#include "lib/triggers/trigger_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/base/toml_file.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/trigger_rule_check.h"

namespace neurontrace {
namespace {

// Defaults of keys that a rule does not set; docs/user/triggers.md names them.
constexpr uint64_t kCoolDownDefaultNs = 600 * kNsPerSecond;
constexpr uint32_t kPerHourDefault = 4;
constexpr uint64_t kLastDefaultNs = 20 * kNsPerSecond;
constexpr uint64_t kForDefaultNs = 10 * kNsPerSecond;
constexpr uint32_t kPeersDefault = 8;  // of rules for verdicts

// Accepts up to 9 digits before the point and 6 after it, so that no value exceeds a double's exact
// range. Signs, exponents, "inf" and "nan" are refused.
std::optional<double> ParseNumber(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const bool digits_only =
      std::count_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }) ==
      static_cast<ptrdiff_t>(text.size() - (point < text.size() ? 1 : 0));
  if (!digits_only || point == 0 || point > 9 || text.size() - point > 7 ||
      point + 1 == text.size()) {
    return std::nullopt;
  }
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns nanoseconds for a number, optional blanks and a unit, or for 0 without one. Returns
// nullopt for anything else; limits are checked later.
std::optional<uint64_t> ParseDuration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3'600e9}, {"d", 86'400e9}};
  const size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view unit = text.substr(unit_at);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const std::optional<double> number = ParseNumber(text.substr(0, unit_at));
  if (!number) return std::nullopt;
  if (*number == 0 && unit.empty()) return 0;
  for (const auto& [word, ns] : kUnits) {
    if (unit != word) continue;
    const double whole_ns = std::round(*number * ns);
    // Beyond every limit, so that the range check refuses it.
    return whole_ns < 0x1p63 ? static_cast<uint64_t>(whole_ns) : UINT64_MAX;
  }
  return std::nullopt;
}

// Returns a function for TomlKey that stores a duration in `ns`, which must outlive it.
std::function<std::string(const TomlNode&)> ParseDurationOption(uint64_t& ns) {
  return [&ns](const TomlNode& value) -> std::string {
    const std::optional<uint64_t> parsed = ParseDuration(value.text);
    if (!parsed)
      return "must be a number and a unit: \"500ms\", \"20s\", \"10m\", \"2h\" or \"1d\"";
    ns = *parsed;
    return "";
  };
}

// Returns the keys of a rule with functions that store their values in `rule`, which must outlive
// them. They check forms only; CheckWhole checks what the values mean.
std::vector<TomlKey> KeysOf(TriggerRule& rule) {
  // Each function returns what is wrong with a value, as the end of a sentence that begins with it.
  const auto take_kind = [&rule](const TomlNode& value) -> std::string {
    rule.kind = TriggerKindOf(value.text);
    if (rule.kind != TriggerKind::kUnspecified) return "";
    // Kinds that do not exist, but whose effect a POST has.
    if (value.text == "event" || value.text == "file") {
      return fmt::format(
          "must be one of {}; write `when = \"post\"`, and let the program that detects the {} run "
          "`curl -d CAUSE http://127.0.0.1:9402/triggers/{}`",
          DescribeTriggerKinds(), value.text, rule.name);
    }
    return fmt::format("must be one of {}", DescribeTriggerKinds());
  };
  const auto take_times = [&rule](const TomlNode& value) -> std::string {
    const std::optional<double> number = ParseNumber(value.text);
    if (!number || value.kind == TomlKind::kString) return "must be a number, such as 3 or 2.5";
    rule.times_median = *number;
    return "";
  };
  const auto take_per_hour = [&rule](const TomlNode& value) -> std::string {
    const std::optional<double> number = ParseNumber(value.text);
    if (!number || value.kind != TomlKind::kInteger) return "must be a whole number, such as 4";
    rule.per_hour_max = static_cast<uint32_t>(*number);
    return "";
  };
  const auto take_stacks = [&rule](const TomlNode& value) -> std::string {
    if (value.kind != TomlKind::kBoolean) return "must be true or false";
    rule.stacks = value.text == "true";
    return "";
  };
  const auto take_peers = [&rule](const TomlNode& value) -> std::string {
    const std::optional<double> number = ParseNumber(value.text);
    if (!number || value.kind != TomlKind::kInteger) return "must be a whole number, such as 8";
    rule.peers = static_cast<uint32_t>(*number);
    return "";
  };
  return {{"when", take_kind},
          {"job", ParseTomlString(rule.job)},
          {"times-median", take_times},
          {"silent-for", ParseDurationOption(rule.silent_ns)},
          {"verdict", ParseTomlString(rule.verdicts)},
          {"peers", take_peers},
          {"stacks", take_stacks},
          {"cool-down", ParseDurationOption(rule.cool_down_ns)},
          {"per-hour", take_per_hour},
          {"record-last", ParseDurationOption(rule.last_ns)},
          {"record-for", ParseDurationOption(rule.duration_ns)}};
}

// Reports the first problem of the rule as a whole, at the key that it is about: further ones may
// only follow from it.
void CheckWhole(const TriggerRule& rule, const TomlNode& section, TomlProblems& problems) {
  for (const TriggerRuleCheck& check : TriggerRuleChecks()) {
    const std::string words = check.words(rule);
    if (words.empty()) continue;
    const auto at = std::find_if(section.children.begin(), section.children.end(),
                                 [&](const TomlNode& member) { return member.key == check.key; });
    const bool is_there = at != section.children.end();
    if (check.key.empty() || check.key == "when") {
      problems.Add(section, rule.name, words);
    } else if (is_there) {
      problems.Add(*at, rule.name, fmt::format("{} {}", check.key, words));
    } else {
      problems.Add(section, rule.name, fmt::format("{} is missing; it {}", check.key, words));
    }
    return;
  }
}

}  // namespace

// Continues after a problem, so that one report names the problems of all rules. Only a rule beyond
// the limit ends the loop.
absl::StatusOr<std::vector<TriggerRule>> ParseTriggerFile(std::string_view text,
                                                          const std::string& path) {
  if (text.size() > limits::kTriggerFileBytesMax) {
    return InvalidArgument("{}: the file is larger than {} bytes", path,
                           limits::kTriggerFileBytesMax);
  }
  ASSIGN_OR_RETURN(const TomlNode root, ParseToml(text, path));
  std::vector<TriggerRule> rules;
  TomlProblems problems(path);
  for (const TomlNode& section : root.children) {
    if (section.kind != TomlKind::kTable) {
      problems.Add(section, "", "is outside of a rule; a rule starts with [NAME]");
      continue;
    }
    if (rules.size() == limits::kTriggerRulesMax) {
      problems.Add(section, "", fmt::format("more than {} rules", limits::kTriggerRulesMax));
      break;
    }
    TriggerRule& rule = rules.emplace_back(TriggerRule{.name = section.key,
                                                       .cool_down_ns = kCoolDownDefaultNs,
                                                       .per_hour_max = kPerHourDefault,
                                                       .last_ns = kLastDefaultNs,
                                                       .duration_ns = kForDefaultNs});
    // A rule with a wrong key is not checked further, as its other values would be misleading.
    if (!ParseTomlSection(section, KeysOf(rule), problems)) continue;
    const bool has_peers = std::any_of(section.children.begin(), section.children.end(),
                                       [](const TomlNode& key) { return key.key == "peers"; });
    if (rule.kind == TriggerKind::kVerdict && !has_peers) rule.peers = kPeersDefault;
    CheckWhole(rule, section, problems);
  }
  RETURN_IF_ERROR(problems.status());
  return rules;
}

absl::StatusOr<std::vector<TriggerRule>> ReadTriggerFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits::kTriggerFileBytesMax));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument(
        "{} is empty, perhaps truncated while it was written; a file without rules needs at least "
        "a comment",
        path);
  }
  return ParseTriggerFile(text, path);
}

}  // namespace neurontrace
