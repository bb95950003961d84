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

// Which captures are exported by themselves when they end, how and where to. A plain value.
struct StandingRule {
  std::string name;                  // of letters, digits, - and _
  std::string to;                    // a destination of ExportRoots
  std::vector<std::string> formats;  // as in --format; at least one
  std::string job;                   // that the capture was asked for by; empty: any
  std::string capture;               // the capture's name, or its beginning and *; empty: any
  bool incomplete = true;            // those that are incomplete, too
};

// Parses a table of TOML in one line with the keys name, to, formats (a string or an array of them;
// default: perfetto), job, capture, incomplete (true or false). INVALID_ARGUMENT says what is
// wrong.
absl::StatusOr<StandingRule> ParseStandingRule(std::string_view text);

// True for a capture that has ended with something in it and that the rule selects.
bool Matches(const StandingRule& rule, const CaptureRecord& record);

// Which captures the standing exports still have to do, and when. Kept in a file, so that a restart
// continues; a rule takes the captures that end after it was first seen. One thread.
class StandingQueue {
 public:
  static constexpr size_t kPendingMax = 10'000;  // the newest beyond it is refused and has failed
  // Of all states; those of captures that are no more go. What is beyond it has failed.
  static constexpr size_t kEntriesMax = 100'000;
  static constexpr uint64_t kForgetPauseNs = 600'000'000'000;
  static constexpr uint32_t kTriesMax = 16;  // over about two hours
  static constexpr uint64_t kFirstPauseNs = 5'000'000'000;
  static constexpr uint64_t kLongestPauseNs = 600'000'000'000;

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
    uint64_t done = 0;  // since it was built, as the next
    uint64_t failed = 0;
    uint64_t forgone = 0;  // of captures that were deleted before
    uint64_t retried = 0;
    uint64_t pending = 0;  // now
  };

  // `path` is of its file. Rule names are different. Reads what is there; what cannot be read is
  // taken for nothing, and `problem` says so.
  StandingQueue(const Deps& deps, std::string path, std::vector<StandingRule> rules,
                std::string& problem);

  // A capture has ended, or has long since: takes it up where a rule selects it and has not done it
  // yet. Not before `due_realtime_ns`.
  void Offer(const CaptureRecord& record, uint64_t due_realtime_ns);
  // What is no more there: nobody wants its remaining tasks any more.
  void Forget(const CaptureId& capture);
  // All of them, not more often than each kForgetPauseNs.
  void ForgetGone(const std::function<bool(const CaptureId&)>& is_gone);
  // The one that is due, nothing else.
  std::optional<Task> Next() const;
  // Its result. An error makes it pending again, later, kTriesMax times.
  void Finish(const Task& task, const absl::Status& status);
  // Writes what has changed. Errors of the disk: it is tried again the next time.
  absl::Status Save();

  const Counts& counts() const { return counts_; }
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
  std::vector<CaptureId> Captures() const;  // of which something is kept

  const Deps deps_;
  const std::string path_;
  const std::vector<StandingRule> rules_;
  std::map<std::string, uint64_t> since_;  // rule to when it was first seen
  std::map<Key, Entry> entries_;
  Counts counts_;
  uint64_t forget_at_ns_ = 0;  // monotonic
  bool has_changed_ = false;
};

}  // namespace neurontrace
