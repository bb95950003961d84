// SPDX-License-Identifier: Apache-2.0
#include "lib/triggers/trigger_rule_check.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/verdict_patterns.h"

namespace neurontrace {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;

// The names of the kinds in rule files, in the order in which messages list them.
constexpr std::pair<std::string_view, TriggerKind> kKinds[] = {
    {"slow-execution", TriggerKind::kSlowExecution},
    {"silent-core", TriggerKind::kSilentCore},
    {"worker-died", TriggerKind::kWorkerDied},
    {"post", TriggerKind::kPost},
    {"verdict", TriggerKind::kVerdict},
};

// Names appear in URLs (/triggers/NAME) and in labels of metrics.
bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

// Each of the checks returns what is wrong, as the end of a sentence that begins with the key, or
// "".
std::string CheckName(const TriggerRule& rule) {
  const std::string& name = rule.name;
  const bool good = !name.empty() && name.size() <= limits::kTriggerNameBytesMax &&
                    name[0] != '.' && name[0] != '-' &&
                    std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (good) return "";
  return fmt::format(
      "a rule's name must have 1 to {} letters, digits and - _ . and must not start with - or .",
      limits::kTriggerNameBytesMax);
}

std::string CheckKind(const TriggerRule& rule) {
  if (!ToString(rule.kind).empty()) return "";
  return fmt::format("the rule has no condition; add `when = \"KIND\"` with one of {}",
                     DescribeTriggerKinds());
}

// Checks a text that messages quote and that is compared with text from workers.
std::string CheckText(std::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) return fmt::format("is longer than {} bytes", bytes_max);
  // Jobs are quoted in messages.
  if (CleanText(text, bytes_max) != text || text.find('"') != std::string_view::npos) {
    return "has unprintable characters or quotes";
  }
  return "";
}

std::string CheckJob(const TriggerRule& rule) {
  return CheckText(rule.job, limits::kIdentityStringBytesMax);
}

// Returns the error for a key that does not apply to the rule's kind.
std::string NotOfKind(const TriggerRule& rule, TriggerKind kind) {
  return fmt::format(
      "applies to `when = \"{}\"`, but this rule has `when = \"{}\"`; remove the line",
      ToString(kind), ToString(rule.kind));
}

// A key of another kind is refused, as it would have no effect.
std::string CheckTimesMedian(const TriggerRule& rule) {
  if (rule.kind != TriggerKind::kSlowExecution) {
    return rule.times_median == 0 ? "" : NotOfKind(rule, TriggerKind::kSlowExecution);
  }
  // NaN would pass a check that only compares.
  if (std::isfinite(rule.times_median) && rule.times_median >= limits::kTriggerTimesMedianMin &&
      rule.times_median <= limits::kTriggerTimesMedianMax) {
    return "";
  }
  return fmt::format(
      "must be a number from {} to {}, a multiple of the median duration of executions",
      limits::kTriggerTimesMedianMin, limits::kTriggerTimesMedianMax);
}

// Checks that a duration is from `min_ns` to `max_ns`. Returns what is wrong, or "".
std::string CheckDuration(uint64_t ns, uint64_t min_ns, uint64_t max_ns) {
  if (ns < min_ns || ns > max_ns) {
    return fmt::format("must be a duration from {} to {}", DescribeDuration(min_ns),
                       DescribeDuration(max_ns));
  }
  // DescribeDuration writes whole milliseconds, and what it writes must read back the same.
  if (ns % kMillisecondNs != 0) return "must be a whole number of milliseconds";
  return "";
}

std::string CheckSilence(const TriggerRule& rule) {
  if (rule.kind != TriggerKind::kSilentCore) {
    return rule.silent_ns == 0 ? "" : NotOfKind(rule, TriggerKind::kSilentCore);
  }
  return CheckDuration(rule.silent_ns, limits::kTriggerSilenceMinNs, limits::kTriggerSilenceMaxNs);
}

std::string CheckVerdicts(const TriggerRule& rule) {
  if (rule.kind != TriggerKind::kVerdict) {
    return rule.verdicts.empty() ? "" : NotOfKind(rule, TriggerKind::kVerdict);
  }
  const absl::Status status = CheckVerdictPatterns(rule.verdicts);
  return status.ok() ? "" : std::string(status.message());
}

std::string CheckPeers(const TriggerRule& rule) {
  if (rule.kind != TriggerKind::kVerdict) {
    return rule.peers == 0 ? "" : NotOfKind(rule, TriggerKind::kVerdict);
  }
  if (rule.peers <= limits::kTriggerPeersMax) return "";
  return fmt::format("must be a number from 0 to {}", limits::kTriggerPeersMax);
}

std::string CheckStacks(const TriggerRule& rule) {
  const bool has_suspects = rule.kind == TriggerKind::kSilentCore ||
                            rule.kind == TriggerKind::kSlowExecution ||
                            rule.kind == TriggerKind::kVerdict;
  if (!rule.stacks || has_suspects) return "";
  return fmt::format(
      "applies to slow-execution, silent-core and verdict, but this rule has `when = \"{}\"`; "
      "remove the line",
      ToString(rule.kind));
}

std::string CheckCoolDown(const TriggerRule& rule) {
  return CheckDuration(rule.cool_down_ns, limits::kTriggerCoolDownMinNs,
                       limits::kTriggerCoolDownMaxNs);
}

std::string CheckPerHour(const TriggerRule& rule) {
  if (rule.per_hour_max >= 1 && rule.per_hour_max <= limits::kTriggerPerHourMax) return "";
  return fmt::format("must be a number from 1 to {}", limits::kTriggerPerHourMax);
}

// Checks a length of recording; 0 means that the rule does not record in this way.
std::string CheckRecording(uint64_t ns) {
  if (ns == 0) return "";
  return CheckDuration(ns, limits::kTriggerRecordMinNs, limits::kTriggerRecordMaxNs);
}

std::string CheckLast(const TriggerRule& rule) { return CheckRecording(rule.last_ns); }

// Reports also a rule that records in neither way.
std::string CheckFor(const TriggerRule& rule) {
  if (rule.last_ns == 0 && rule.duration_ns == 0) {
    return "and record-last are both 0, so the rule records nothing";
  }
  return CheckRecording(rule.duration_ns);
}

}  // namespace

std::string_view ToString(TriggerKind kind) {
  for (const auto& [word, value] : kKinds) {
    if (value == kind) return word;
  }
  return "";
}

TriggerKind TriggerKindOf(std::string_view word) {
  for (const auto& [name, value] : kKinds) {
    if (name == word) return value;
  }
  return TriggerKind::kUnspecified;
}

std::string DescribeTriggerKinds() {
  std::string words;
  for (const auto& [word, value] : kKinds) {
    if (!words.empty()) words += ", ";
    words += word;
  }
  return words;
}

// The name has no key: it is that of the rule's section.
const std::vector<TriggerRuleCheck>& TriggerRuleChecks() {
  static const std::vector<TriggerRuleCheck> checks = {
      {"", CheckName},
      {"when", CheckKind},
      {"job", CheckJob},
      {"times-median", CheckTimesMedian},
      {"silent-for", CheckSilence},
      {"verdict", CheckVerdicts},
      {"peers", CheckPeers},
      {"stacks", CheckStacks},
      {"cool-down", CheckCoolDown},
      {"per-hour", CheckPerHour},
      {"record-last", CheckLast},
      {"record-for", CheckFor},
  };
  return checks;
}

absl::Status CheckTriggerRule(const TriggerRule& rule) {
  for (const TriggerRuleCheck& check : TriggerRuleChecks()) {
    const std::string words = check.words(rule);
    if (words.empty()) continue;
    return InvalidArgument("rule '{}': {}{}{}", CleanText(rule.name, limits::kTriggerNameBytesMax),
                           check.key, check.key.empty() ? "" : " ", words);
  }
  return absl::OkStatus();
}

// Uses the largest unit that divides the duration.
std::string DescribeDuration(uint64_t ns) {
  constexpr std::pair<uint64_t, const char*> kUnits[] = {
      {86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1'000, "s"}};
  const uint64_t ms = ns / kMillisecondNs;
  if (ms == 0) return "0s";
  for (const auto& [unit_ms, word] : kUnits) {
    if (ms % unit_ms == 0) return fmt::format("{}{}", ms / unit_ms, word);
  }
  return fmt::format("{}ms", ms);
}

}  // namespace neurontrace
