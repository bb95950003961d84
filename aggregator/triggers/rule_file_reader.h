// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/triggers/rule_file_watch.h"
#include "base/clock.h"
#include "base/task_runner.h"
#include "trace/trigger_rule.h"

namespace neurontrace {

// Looks at the rule file on a thread of its own, as file systems hang: the sequence that acts upon
// the rules never waits for it, but in the end. Made, asked and destroyed on one thread or
// sequence.
// thread: trigger rules: reads the rule file when it changes; its file system may hang
class RuleFileReader {
 public:
  struct News {
    std::optional<std::vector<TriggerRule>> rules;  // other ones than before
    std::string problem;                            // see RuleFileWatch; empty: none
  };

  // `clock` outlives it.
  RuleFileReader(std::string path, const Clock& clock) : watch_(std::move(path), clock) {}
  ~RuleFileReader();
  RuleFileReader(const RuleFileReader&) = delete;
  RuleFileReader& operator=(const RuleFileReader&) = delete;

  // For the first time, and at once: nothing runs yet that it could keep waiting.
  absl::StatusOr<std::vector<TriggerRule>> Load() { return watch_.Load(); }
  // From now on looks every two seconds; `tell` is run on `runner` when rules or problem change,
  // and not any more after this has gone. After Load, once; `runner` outlives this.
  void Begin(TaskRunner& runner, std::function<void(News)> tell);
  // Reads the file in any case, at once.
  void LookNow();

  const std::string& path() const { return watch_.path(); }

 private:
  void Run(TaskRunner& runner);

  RuleFileWatch watch_;  // of the thread, once there is one
  std::shared_ptr<std::function<void(News)>> tell_;

  std::mutex mutex_;  // guards both
  bool asked_ = false;
  bool ending_ = false;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace neurontrace
