// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/standing_rule.h"

#include <algorithm>

#include "aggregator/deliver/export_roots.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr size_t kRuleNameBytesMax = 64;

bool IsRuleName(std::string_view name) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  return !name.empty() && name.size() <= kRuleNameBytesMax &&
         std::all_of(name.begin(), name.end(), is_good);
}

// Without empty ones.
std::vector<std::string> PiecesOf(std::string_view text, char between) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const size_t end = text.find(between);
    if (end != 0) pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return pieces;
}

absl::Status SetWord(const std::string& key, const std::string& value, StandingRule& rule) {
  if (key == "name") {
    rule.name = value;
  } else if (key == "to") {
    rule.to = value;
  } else if (key == "formats") {
    rule.formats = PiecesOf(value, ',');
  } else if (key == "job") {
    rule.job = value;
  } else if (key == "capture") {
    rule.capture = value;
  } else if (key == "incomplete" && (value == "yes" || value == "no")) {
    rule.incomplete = value == "yes";
  } else {
    return InvalidArgument(
        "'{}={}': there are name, to, formats, job, capture, and incomplete=yes or no", key, value);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text) {
  StandingRule rule;
  for (const std::string& word : PiecesOf(text, ' ')) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals + 1 == word.size()) {
      return InvalidArgument("'{}': write KEY=VALUE", word);
    }
    RETURN_IF_ERROR(SetWord(word.substr(0, equals), word.substr(equals + 1), rule));
  }
  if (!IsRuleName(rule.name)) {
    return InvalidArgument("'{}' needs a name of letters, digits, - and _: name=NAME", text);
  }
  if (!IsDestination(rule.to)) {
    return InvalidArgument("'{}' needs a destination: to=/DIRECTORY", text);
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
