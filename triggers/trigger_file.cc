// SPDX-License-Identifier: Apache-2.0
#include "triggers/trigger_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/clean_text.h"
#include "base/ini_text.h"
#include "base/small_file.h"
#include "base/status.h"
#include "base/time_units.h"
#include "trace/trigger_limits.h"
#include "triggers/trigger_rule_check.h"

namespace neurontrace {
namespace {

constexpr uint64_t kCoolDownDefaultNs = 600 * kNsPerSecond;
constexpr uint32_t kPerHourDefault = 4;
constexpr uint64_t kLastDefaultNs = 20 * kNsPerSecond;
constexpr uint64_t kForDefaultNs = 10 * kNsPerSecond;

// Up to 9 digits before the point and 6 behind it.
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

std::optional<uint64_t> ParseDuration(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3'600e9}, {"d", 86'400e9}};
  const size_t unit_at = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = TrimmedIni(text.substr(unit_at));
  const std::optional<double> number = ParseNumber(text.substr(0, unit_at));
  if (!number) return std::nullopt;
  if (*number == 0 && unit.empty()) return 0;
  for (const auto& [word, ns] : kUnits) {
    if (unit != word) continue;
    const double whole_ns = std::round(*number * ns);
    return whole_ns < 0x1p63 ? static_cast<uint64_t>(whole_ns) : UINT64_MAX;  // out of any range
  }
  return std::nullopt;
}

std::string TakeDuration(std::string_view value, uint64_t& ns) {
  const std::optional<uint64_t> parsed = ParseDuration(value);
  if (!parsed) return "is a number and a unit: 500ms, 20s, 10m, 2h or 1d";
  ns = *parsed;
  return "";
}

std::string TakeKind(std::string_view value, TriggerRule& rule) {
  rule.kind = TriggerKindOf(value);
  if (rule.kind != TriggerKind::kUnspecified) return "";
  if (value == "event" || value == "file") {
    return fmt::format(
        "is one of {}: write `when = post`, and let what sees the {} run `curl -d CAUSE "
        "http://127.0.0.1:9402/triggers/{}`",
        TriggerKindWords(), value, rule.name);
  }
  return fmt::format("is one of {}", TriggerKindWords());
}

std::string TakeTimes(std::string_view value, TriggerRule& rule) {
  const std::optional<double> number = ParseNumber(value);
  if (!number) return "is a number, as 3 or 2.5";
  rule.times_median = *number;
  return "";
}

std::string TakePerHour(std::string_view value, TriggerRule& rule) {
  const std::optional<double> number = ParseNumber(value);
  if (!number || value.find('.') != std::string_view::npos) return "is a whole number, as 4";
  rule.per_hour_max = static_cast<uint32_t>(*number);
  return "";
}

struct Key {
  std::string_view name;
  // Puts a value into the rule; returns what is wrong with it.
  std::string (*take)(std::string_view value, TriggerRule& rule);
};

constexpr Key kKeys[] = {
    {"when", TakeKind},
    {"job",
     [](std::string_view value, TriggerRule& rule) {
       rule.job = value;
       return std::string();
     }},
    {"times-median", TakeTimes},
    {"silent-for",
     [](std::string_view value, TriggerRule& rule) { return TakeDuration(value, rule.silent_ns); }},
    {"cool-down", [](std::string_view value,
                     TriggerRule& rule) { return TakeDuration(value, rule.cool_down_ns); }},
    {"per-hour", TakePerHour},
    {"record-last",
     [](std::string_view value, TriggerRule& rule) { return TakeDuration(value, rule.last_ns); }},
    {"record-for", [](std::string_view value,
                      TriggerRule& rule) { return TakeDuration(value, rule.duration_ns); }},
};

std::string KeyWords() {
  std::string words;
  for (const Key& key : kKeys) words += fmt::format("{}{}", words.empty() ? "" : ", ", key.name);
  return words;
}

class Parser {
 public:
  TriggerFile Parse(std::string_view text);

 private:
  void TakeLine(std::string_view line);
  void BeginRule(std::string_view line);
  void TakeKey(std::string_view line);
  void EndRule();
  void Complain(size_t line, std::string words);

  TriggerFile file_;
  size_t line_ = 0;
  bool in_rule_ = false;
  TriggerRule rule_;
  size_t rule_line_ = 0;
  std::map<std::string_view, size_t> key_lines_;  // of the rule at hand
  bool has_bad_key_ = false;                      // a value of it was not understood
  std::map<std::string, size_t> rule_lines_;
};

TriggerFile Parser::Parse(std::string_view text) {
  if (text.size() > limits::kTriggerFileBytesMax) {
    Complain(1, fmt::format("the file is larger than {} bytes", limits::kTriggerFileBytesMax));
    return std::move(file_);
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // as some editors write it
  while (!text.empty() && file_.problems.size() < limits::kTriggerProblemsMax) {
    ++line_;
    const size_t end = std::min(text.find('\n'), text.size());
    TakeLine(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  EndRule();
  // What is wrong with a rule as a whole is known at its end, and may stand before the rest.
  std::stable_sort(file_.problems.begin(), file_.problems.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(file_);
}

void Parser::TakeLine(std::string_view line) {
  if (line.size() > limits::kTriggerLineBytesMax) {
    return Complain(line_,
                    fmt::format("the line is longer than {} bytes", limits::kTriggerLineBytesMax));
  }
  line = TrimmedIni(line);
  if (IsIniComment(line)) return;
  if (line[0] == '[') return BeginRule(line);
  TakeKey(line);
}

void Parser::BeginRule(std::string_view line) {
  EndRule();
  const size_t close = line.find(']');
  if (close == std::string_view::npos || !IsIniComment(TrimmedIni(line.substr(close + 1)))) {
    in_rule_ = true;  // its keys are no keys of the rule before
    rule_line_ = line_;
    has_bad_key_ = true;
    return Complain(line_, "a rule begins with its name alone in brackets: [slow-step]");
  }
  in_rule_ = true;
  rule_line_ = line_;
  rule_.name = TrimmedIni(line.substr(1, close - 1));
  rule_.cool_down_ns = kCoolDownDefaultNs;
  rule_.per_hour_max = kPerHourDefault;
  rule_.last_ns = kLastDefaultNs;
  rule_.duration_ns = kForDefaultNs;
  const auto [known, is_new] = rule_lines_.try_emplace(rule_.name, line_);
  if (!is_new) {
    Complain(line_, fmt::format("there is a rule of this name at line {} already: give one of "
                                "them another",
                                known->second));
  }
  if (rule_lines_.size() == size_t{limits::kTriggerRulesMax} + 1 && is_new) {
    Complain(line_, fmt::format("more than {} rules", limits::kTriggerRulesMax));
  }
}

void Parser::TakeKey(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) {
    return Complain(line_, fmt::format("'{}' is no `key = value`", CleanText(line, 80)));
  }
  if (!in_rule_) return Complain(line_, "stands before the first rule: begin with [NAME]");
  const std::string_view name = TrimmedIni(line.substr(0, equals));
  const Key* const key = std::find_if(std::begin(kKeys), std::end(kKeys),
                                      [&](const Key& each) { return each.name == name; });
  if (key == std::end(kKeys)) {
    return Complain(line_, fmt::format("there is no key '{}': the keys are {}", CleanText(name, 80),
                                       KeyWords()));
  }
  if (const auto [known, is_new] = key_lines_.try_emplace(key->name, line_); !is_new) {
    return Complain(line_, fmt::format("{} stands at line {} already", name, known->second));
  }
  const std::optional<std::string_view> value = IniValueOf(line.substr(equals + 1));
  std::string problem;
  if (!value) {
    problem = "has a quote that is not closed, or something behind it";
  } else if (value->empty()) {
    problem = "has no value: give one, or remove the line";
  } else {
    problem = key->take(*value, rule_);
  }
  if (problem.empty()) return;
  has_bad_key_ = true;
  const std::string shown =
      value && !value->empty() ? fmt::format(" = {}", CleanText(*value, 80)) : std::string();
  Complain(line_, fmt::format("{}{}: {} {}", name, shown, name, problem));
}

// What is wrong with the rule as a whole is told where the key stands that it is about.
void Parser::EndRule() {
  if (!std::exchange(in_rule_, false)) return;
  if (!has_bad_key_) {
    for (const TriggerRuleCheck& check : TriggerRuleChecks()) {
      const std::string words = check.words(rule_);
      if (words.empty()) continue;
      const auto at = key_lines_.find(check.key);
      const bool is_missing = at == key_lines_.end() && !check.key.empty();
      Complain(at == key_lines_.end() ? rule_line_ : at->second,
               fmt::format(
                   "{}{}{}{}", is_missing && check.key != "when" ? "there has to be " : "",
                   check.key == "when" ? "" : check.key,
                   check.key.empty() || check.key == "when" ? "" : (is_missing ? ", which " : " "),
                   words));
      break;  // one is enough: the next may follow from it
    }
    file_.rules.push_back(rule_);
  }
  rule_ = {};
  key_lines_.clear();
  has_bad_key_ = false;
}

void Parser::Complain(size_t line, std::string words) {
  if (file_.problems.size() >= limits::kTriggerProblemsMax) return;
  file_.problems.push_back(
      {line, CleanText(rule_.name, limits::kTriggerNameBytesMax), std::move(words)});
}

}  // namespace

TriggerFile ParseTriggerFile(std::string_view text) { return Parser().Parse(text); }

std::string DescribeProblems(const std::string& path, const TriggerFile& file) {
  std::string text;
  for (const TriggerFileProblem& problem : file.problems) {
    text += fmt::format("{}{}:{}: {}{}", text.empty() ? "" : "\n", path, problem.line,
                        problem.rule.empty() ? "" : fmt::format("rule {}: ", problem.rule),
                        problem.words);
  }
  return text;
}

absl::StatusOr<std::vector<TriggerRule>> ReadTriggerFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, limits::kTriggerFileBytesMax));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return InvalidArgument(
        "{} is empty: was it cut off while it was written? A file without rules has at least a "
        "comment",
        path);
  }
  TriggerFile parsed = ParseTriggerFile(text);
  if (parsed.problems.empty()) return std::move(parsed.rules);
  return InvalidArgument("{}", DescribeProblems(path, parsed));
}

}  // namespace neurontrace
