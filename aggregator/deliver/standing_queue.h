// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/clock.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Selects captures that are exported automatically when they end, and says how and where to. A
// plain value.
struct StandingRule {
  // Letters, digits, - and _; unique.
  std::string name;
  // A destination for ExportRoots.
  std::string to;
  std::vector<std::string> formats;  // as in --format; at least one
  // The job that the capture selected by; empty: any.
  std::string job;
  // The capture's name, or its beginning followed by *; empty: any.
  std::string capture;
  // Whether incomplete captures are exported, too.
  bool incomplete = true;
};

// Parses a TOML inline table with the keys name, to, formats (a string or an array of them;
// default: perfetto), job, capture, and incomplete (true or false). Fails with INVALID_ARGUMENT
// that describes the problem; for the older form KEY=VALUE it shows the same rule as TOML.
absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text);

// Returns whether the rule selects this capture, which must have ended with events in it.
bool Matches(const StandingRule& rule, const CaptureRecord& record);

// Keeps which captures the standing exports have still to do, and when. Its file lets a restart
// continue; a rule selects only captures that end after the rule was first seen. Used by one thread
// at a time.
class StandingQueue {
 public:
  // Beyond it, a new entry is refused and counts as failed.
  static constexpr size_t kPendingMax = 10'000;
  // Entries of all states. Those of deleted captures are removed; entries beyond the limit count as
  // failed.
  static constexpr size_t kEntriesMax = 100'000;
  // How often deleted captures are looked for, at most.
  static constexpr uint64_t kForgetPauseNs = 600'000'000'000;
  // Attempts of one export, spread over about two hours by the pauses below.
  static constexpr uint32_t kTriesMax = 16;
  static constexpr uint64_t kFirstPauseNs = 5'000'000'000;
  static constexpr uint64_t kLongestPauseNs = 600'000'000'000;

  // All must outlive the queue.
  struct Deps {
    FileSystem& files;
    const Clock& clock;
    Random& random;
  };
  struct Task {
    const StandingRule* rule = nullptr;
    CaptureId capture;
  };
  struct Counts {
    // Since construction, as are the next three.
    uint64_t done = 0;
    uint64_t failed = 0;
    // Of captures that were deleted first.
    uint64_t forgone = 0;
    uint64_t retried = 0;
    // At present.
    uint64_t pending = 0;
  };

  // Reads the queue's file at `path`. Lines that cannot be read are ignored with all that follow,
  // and `problem` then describes why. Names of rules must be unique.
  StandingQueue(const Deps& deps, std::string path, std::vector<StandingRule> rules,
                std::string& problem);

  // Queues an ended capture for each rule that selects it and does not have it yet. It is due at
  // `due_realtime_ns`, when its clocks are final. May be repeated for the same capture.
  void Offer(const CaptureRecord& record, uint64_t due_realtime_ns);
  // Removes a deleted capture; its pending exports count as forgone.
  void Forget(const CaptureId& capture);
  // Forgets all captures that `is_gone` confirms, at most once in kForgetPauseNs.
  void ForgetDeleted(const std::function<bool(const CaptureId&)>& is_gone);
  // Returns the export that has been due longest, or nothing. Its rule points into this queue.
  std::optional<Task> Next() const;
  // Records the result. After an error the export becomes due again after a pause that grows, until
  // kTriesMax attempts have failed.
  void Finish(const Task& task, const absl::Status& status);
  // Writes the file if anything changed. Fails with errors of the disk; the next call tries again.
  absl::Status Save();

  const Counts& counts() const { return counts_; }
  // Captures of one rule in each state, those of earlier processes included.
  struct RuleCounts {
    uint64_t pending = 0;
    uint64_t done = 0;
    uint64_t failed = 0;
  };
  // Returns them in the order of rules(); reads all entries.
  std::vector<RuleCounts> CountByRule() const;
  // Returns whether anything changed since the last successful Save.
  bool has_changed() const { return has_changed_; }
  const std::vector<StandingRule>& rules() const { return rules_; }

 private:
  enum class State : uint8_t { kPending, kDone, kFailed, kForgone };
  struct Entry {
    State state = State::kPending;
    uint32_t tries = 0;
    uint64_t due_realtime_ns = 0;
  };
  using Key = std::pair<std::string, std::string>;  // rule and capture

  void Read(std::string& problem);
  bool ReadLine(const std::string& line);
  const StandingRule* FindRule(const std::string& name) const;
  void SetState(Entry& entry, State state);
  // Returns the captures that have an entry.
  std::vector<CaptureId> Captures() const;

  const Deps deps_;
  const std::string path_;
  const std::vector<StandingRule> rules_;
  // When each rule was first seen, in nanoseconds since 1970.
  std::map<std::string, uint64_t> since_;
  std::map<Key, Entry> entries_;
  Counts counts_;
  uint64_t forget_at_ns_ = 0;  // monotonic
  bool has_changed_ = false;
};

}  // namespace neurontrace
