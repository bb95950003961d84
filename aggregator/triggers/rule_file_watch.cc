// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/rule_file_watch.h"

#include "triggers/trigger_file.h"

namespace neurontrace {

absl::StatusOr<std::vector<TriggerRule>> RuleFileWatch::Load() {
  file_.MayBeNew();
  return Read();
}

absl::StatusOr<std::vector<TriggerRule>> RuleFileWatch::Read() {
  absl::StatusOr<std::vector<TriggerRule>> rules = ReadTriggerFile(file_.path());
  problem_ = rules.ok() ? "" : std::string(rules.status().message());
  if (rules.ok()) rules_ = *rules;
  return rules;
}

std::optional<std::vector<TriggerRule>> RuleFileWatch::Look(bool anyway) {
  if (!file_.MayBeNew() && !anyway) return std::nullopt;
  const std::vector<TriggerRule> before = rules_;
  const auto rules = Read();
  if (!rules.ok() || *rules == before) return std::nullopt;
  return *rules;
}

}  // namespace neurontrace
