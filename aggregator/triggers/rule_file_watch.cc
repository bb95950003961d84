// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/rule_file_watch.h"

#include <sys/stat.h>

#include "triggers/trigger_file.h"

namespace neurontrace {
namespace {

// A file that was written again within a tick of its file system's clock has the same time.
constexpr int64_t kTickNs = 2'000'000'000;

}  // namespace

RuleFileWatch::Mark RuleFileWatch::MarkNow() const {
  struct stat about = {};
  if (stat(path_.c_str(), &about) != 0) return {};
  return {.device = about.st_dev,
          .inode = about.st_ino,
          .bytes = about.st_size,
          .changed_ns = about.st_mtim.tv_sec * 1'000'000'000 + about.st_mtim.tv_nsec};
}

absl::StatusOr<std::vector<TriggerRule>> RuleFileWatch::Load() {
  mark_ = MarkNow();
  read_realtime_ns_ = clock_.RealtimeNs();
  absl::StatusOr<std::vector<TriggerRule>> rules = ReadTriggerFile(path_);
  problem_ = rules.ok() ? "" : std::string(rules.status().message());
  if (rules.ok()) rules_ = *rules;
  return rules;
}

std::optional<std::vector<TriggerRule>> RuleFileWatch::Look(bool anyway) {
  const bool was_young = static_cast<int64_t>(read_realtime_ns_) - mark_.changed_ns < kTickNs;
  if (!anyway && !was_young && MarkNow() == mark_) return std::nullopt;
  const std::vector<TriggerRule> before = rules_;
  const auto rules = Load();
  if (!rules.ok() || *rules == before) return std::nullopt;
  return *rules;
}

}  // namespace neurontrace
