// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// Returns how a rule file names a kind, such as "slow-execution"; "" for kUnspecified.
std::string_view ToString(TriggerKind kind);
// Returns the kind of this name; kUnspecified if there is none.
TriggerKind TriggerKindOf(std::string_view word);
// Returns all names for messages: "slow-execution, silent-core, …".
std::string DescribeTriggerKinds();

// Returns true for rules that are evaluated on decoded events, and so cannot fire while no capture
// streams.
constexpr bool NeedsEvents(TriggerKind kind) {
  return kind == TriggerKind::kSlowExecution || kind == TriggerKind::kSilentCore;
}

// One check of a rule: the key of the file that it is about, and a function that returns what is
// wrong and how to fix it, or "".
struct TriggerRuleCheck {
  std::string_view key;
  std::function<std::string(const TriggerRule&)> words;
};
// Returns all checks, in the order in which they are reported.
const std::vector<TriggerRuleCheck>& TriggerRuleChecks();

// Runs all checks. Fails with INVALID_ARGUMENT, naming the rule and its first problem. Pure.
absl::Status CheckTriggerRule(const TriggerRule& rule);

// Returns `ns` in the shortest form that a rule file accepts, such as "1500ms" or "20m". `ns` is
// rounded down to milliseconds.
std::string DescribeDuration(uint64_t ns);

}  // namespace neurontrace
