// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/rule_file_watch.h"

#include "triggers/trigger_file.h"

namespace neurontrace {

absl::StatusOr<std::vector<TriggerRule>> RuleFileWatch::Load() {
  mark_ = MarkOf(path_);
  read_realtime_ns_ = clock_.RealtimeNs();
  absl::StatusOr<std::vector<TriggerRule>> rules = ReadTriggerFile(path_);
  problem_ = rules.ok() ? "" : std::string(rules.status().message());
  if (rules.ok()) rules_ = *rules;
  return rules;
}

std::optional<std::vector<TriggerRule>> RuleFileWatch::Look(bool anyway) {
  if (!anyway && !mark_.WasYoungAt(read_realtime_ns_) && MarkOf(path_) == mark_) {
    return std::nullopt;
  }
  const std::vector<TriggerRule> before = rules_;
  const auto rules = Load();
  if (!rules.ok() || *rules == before) return std::nullopt;
  return *rules;
}

}  // namespace neurontrace
