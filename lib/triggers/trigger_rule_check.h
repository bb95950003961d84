// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// "slow-execution": how a rule file names a kind.
std::string_view WordOf(TriggerKind kind);
// kUnspecified for a word that names none.
TriggerKind TriggerKindOf(std::string_view word);
// All of them, for messages: "slow-execution, silent-core, …".
std::string DescribeTriggerKinds();

// True for rules that are judged from decoded events, and so see nothing while no capture streams.
constexpr bool NeedsEvents(TriggerKind kind) {
  return kind == TriggerKind::kSlowExecution || kind == TriggerKind::kSilentCore;
}

// One thing that can be wrong with a rule: the key of the file that it is about, and a message that
// says what is wrong and how it is put right; empty words: nothing.
struct TriggerRuleCheck {
  std::string_view key;
  std::function<std::string(const TriggerRule&)> words;
};
const std::vector<TriggerRuleCheck>& TriggerRuleChecks();

// All of them at once: INVALID_ARGUMENT names the rule and the first that is wrong. Pure.
absl::Status CheckTriggerRule(const TriggerRule& rule);

// "1.5s", "20m", the shortest form that a rule file takes for so many ns; whole milliseconds.
std::string DescribeDuration(uint64_t ns);

}  // namespace neurontrace
