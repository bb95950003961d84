// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/standing_rule.h"

#include <algorithm>

#include "aggregator/deliver/export_roots.h"
#include "base/clean_text.h"
#include "base/status.h"
#include "base/toml_file.h"

namespace neurontrace {
namespace {

constexpr size_t kRuleNameBytesMax = 64;
constexpr size_t kShownBytesMax = 1'000;  // of a rule in a message

bool IsRuleName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= kRuleNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_good);
}

// The form KEY=VALUE KEY=VALUE as TOML; empty: `text` is not in it.
std::string WordsAsToml(std::string_view text) {
  std::string members;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t equals = word.find('=');
    if (word.empty()) continue;
    if (equals == std::string_view::npos || word.find_first_of("{\"") < equals) return "";
    const std::string_view value = word.substr(equals + 1);
    members += fmt::format("{}{} = {}", members.empty() ? "" : ", ", word.substr(0, equals),
                           value == "yes"  ? "true"
                           : value == "no" ? "false"
                                           : IniValueAsToml(value));
  }
  return members.empty() ? "" : fmt::format("{{{}}}", members);
}

}  // namespace

absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text) {
  const std::string shown = CleanText(text, kShownBytesMax);
  if (text.find_first_not_of(' ') != text.find('{') || text.find('{') == std::string_view::npos) {
    const std::string toml = CleanText(WordsAsToml(text), kShownBytesMax);
    return InvalidArgument("--standing-export {}: write it as TOML: {}", shown,
                           toml.empty() ? "{name = \"all\", to = \"/DIRECTORY\"}" : toml);
  }
  ASSIGN_OR_RETURN(const TomlNode root,
                   ParseToml(fmt::format("rule = {}", text), "--standing-export"));
  TomlProblems problems("--standing-export");
  StandingRule rule;
  const auto take_format = [&rule](const TomlNode& value) -> std::string {
    return TakeTomlString(rule.formats.emplace_back())(value);
  };
  const auto take_incomplete = [&rule](const TomlNode& value) -> std::string {
    rule.incomplete = value.text == "true";
    return value.kind == TomlKind::kBoolean ? "" : "is true or false, without quotes";
  };
  if (root.children.size() != 1) {
    return InvalidArgument("--standing-export {}: more follows the closing brace", shown);
  }
  TakeTomlSection(root.children[0],
                  {{"name", TakeTomlString(rule.name)},
                   {"to", TakeTomlString(rule.to)},
                   {.name = "formats", .take = take_format, .is_list = true},
                   {"job", TakeTomlString(rule.job)},
                   {"capture", TakeTomlString(rule.capture)},
                   {"incomplete", take_incomplete}},
                  problems);
  RETURN_IF_ERROR(problems.status());
  if (!IsRuleName(rule.name)) {
    return InvalidArgument(
        "--standing-export {}: a name has letters, digits, - and _: name = "
        "\"NAME\"",
        shown);
  }
  if (!IsDestination(rule.to)) {
    return InvalidArgument("--standing-export {}: it needs a destination: to = \"/DIRECTORY\"",
                           shown);
  }
  if (rule.formats.empty()) rule.formats = {"perfetto"};
  return rule;
}

bool Matches(const StandingRule& rule, const CaptureRecord& record) {
  const bool is_complete = record.state == CaptureState::kComplete;
  const bool is_wanted =
      is_complete || (rule.incomplete && record.state == CaptureState::kIncomplete);
  const bool has_events = record.spec.mode == CaptureMode::kStream ||
                          record.spec.mode == CaptureMode::kSnapshot ||
                          record.spec.mode == CaptureMode::kContinuous;
  if (!is_wanted || !has_events || record.workers.empty()) return false;
  if (!rule.job.empty() && record.spec.job != rule.job) {
    const auto is_job = [&](const KeyValue& fact) { return fact.value == rule.job; };
    const auto& facts = record.spec.job_facts;
    if (std::none_of(facts.begin(), facts.end(), is_job)) return false;
  }
  if (rule.capture.empty()) return true;
  if (!rule.capture.ends_with('*')) return record.spec.name == rule.capture;
  return record.spec.name.starts_with(
      std::string_view(rule.capture).substr(0, rule.capture.size() - 1));
}

}  // namespace neurontrace
