// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/small_file.h"
#include "trace/trigger_rule.h"

namespace neurontrace {

// The file that an aggregator's rules stand in, looked at again and again. Where a new version of
// it is not good, or it is gone, the rules before stay in force, and `problem` says so. One thread;
// blocks on the disk.
class RuleFileWatch {
 public:
  // `clock` outlives it.
  RuleFileWatch(std::string path, const Clock& clock) : file_(std::move(path), clock) {}

  // For the first time; see ReadTriggerFile for errors.
  absl::StatusOr<std::vector<TriggerRule>> Load();
  // New rules, where the file says other ones than before, by its time, size and place; `anyway`:
  // it is read in any case.
  std::optional<std::vector<TriggerRule>> Look(bool anyway);

  const std::string& path() const { return file_.path(); }
  // What is wrong with the file as it is now; empty: its rules are in force.
  const std::string& problem() const { return problem_; }

 private:
  absl::StatusOr<std::vector<TriggerRule>> Read();

  WatchedFile file_;
  std::vector<TriggerRule> rules_;
  std::string problem_;
};

}  // namespace neurontrace
