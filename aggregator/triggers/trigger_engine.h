// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/triggers/trigger_captures.h"
#include "aggregator/triggers/trigger_incident.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/reserved_tags.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// Why a rule that fired did not make a capture of its own.
enum class TriggerSuppression : uint8_t {
  kNone = 0,
  kSameIncident,  // counted as part of the incident of a running capture
  kCoolDown,
  kPerHour,
  kRecorded,    // another capture records it
  kRefused,     // the capture could not be started
  kTooManyJobs  // beyond limits::kTriggerJobsMax
};
// Number of values above, for arrays indexed by them.
inline constexpr size_t kTriggerSuppressions = 7;
// Returns the label value in metrics, such as "cool_down".
std::string_view ToString(TriggerSuppression reason);

// A rule with its history, for operators. Counts continue after a restart as far as stored captures
// show them.
struct TriggerStatus {
  TriggerRule rule;
  uint64_t fired = 0;
  // Firings since the start without a capture of their own.
  uint64_t suppressed = 0;
  uint64_t last_fired_realtime_ns = 0;
  // Describes the last incident, including reports that joined it later.
  std::string last_cause;
  CaptureId last_capture;
  std::string last_problem;  // why the last firing made no capture; empty: it did
};

// Makes captures of fired rules: one for each incident, however many ranks report it. None is made
// within the rule's cool-down for the same job or beyond its number per hour, and only one runs at
// a time for a job. What happened before a restart is derived from stored captures, which carry the
// label kLabel. On the coordinator's sequence.
class TriggerEngine {
 public:
  static constexpr std::string_view kLabel = kTriggerTag;
  // How long to wait for further reports after the first, so that the cause can count them.
  static constexpr uint64_t kGatherNs = 100'000'000;
  // The longest cool-down after a capture that could not be started.
  static constexpr uint64_t kRefusedRestNs = 10'000'000'000;

  // All must outlive the engine, which `runner`, its sequence, calls.
  TriggerEngine(const Clock& clock, TaskRunner& runner, TriggerCaptures& captures);
  TriggerEngine(const TriggerEngine&) = delete;
  TriggerEngine& operator=(const TriggerEngine&) = delete;

  // Takes a capture of an earlier run of the aggregator. Called before the first SetRules.
  void Restore(const CaptureRecord& record);
  // Replaces the rules; a rule that keeps its name keeps its history.
  void SetRules(const std::vector<TriggerRule>& rules);

  // Handles an agent's report that a rule fires. An unknown rule is only counted.
  void OnFired(const TriggerFired& fired);

  // Handles a capture that ended without having begun. It does not count: the rule may fire again
  // soon, and a snapshot is replaced by a stream. Ignores captures of other origin. May be called
  // from within the coordinator, so it starts nothing itself.
  void OnNotBegun(const CaptureRecord& record, const std::string& why);

  // The result of Fire, which does not wait for further reports. A new capture has kNone. For
  // kSameIncident and kRecorded `capture` is an existing one, if its id is known. `retry_ns`: when
  // to try again, for kCoolDown and kPerHour.
  struct Answer {
    bool is_known = false;
    CaptureId capture;  // the new one, or the one already running
    TriggerSuppression suppression = TriggerSuppression::kNone;
    std::string problem;  // why there is no new one
    uint64_t retry_ns = 0;
  };
  Answer Fire(const TriggerFired& fired);

  // Returns null for an unknown rule. Valid until SetRules.
  const TriggerRule* Find(const std::string& name) const;
  std::vector<TriggerStatus> List() const;  // in the order of the rules

  // Since the start of the process; `suppressed` is indexed by TriggerSuppression.
  struct Counters {
    uint64_t fired = 0;
    std::array<uint64_t, kTriggerSuppressions> suppressed{};
    uint64_t unknown = 0;  // reports of rules that do not exist
  };
  // Published as metrics by TriggerService.
  const Counters& counters() const { return counters_; }

 private:
  // What is remembered of a rule for one job. The empty name is for reports without a known job.
  struct Job {
    int64_t fired_ns = 0;                     // monotonic; negative: before the machine started
    bool has_fired = false;                   // otherwise fired_ns has no meaning
    uint64_t rest_ns = 0;                     // upper limit of its cool-down
    CaptureId capture;                        // the last one, possibly running
    std::optional<TriggerIncident> incident;  // of that, or gathering
    bool gathering = false;
    std::optional<CaptureSpec> stream;  // to start if the snapshot does not begin
  };
  // A rule with its history.
  struct State {
    TriggerStatus status;
    std::deque<int64_t> hour;  // monotonic times of the last hour
    std::map<std::string, Job> jobs;
  };

  int64_t NowNs() const { return static_cast<int64_t>(clock_.MonotonicNs()); }
  // Returns what prevents a capture, or kNone.
  Answer Judge(State& state, Job& job, const TriggerFired& fired);
  // Returns whether the rule has used up its captures of the last hour, and then fills `answer`.
  // Removes older times.
  bool IsHourFull(State& state, Answer& answer);
  // Undoes the count of a firing whose capture did not begin, and records it as refused.
  void Undo(State& state, Job& job, const CaptureId& capture, const std::string& why);
  // Returns the entry of a job and creates it if there is room; null beyond
  // limits::kTriggerJobsMax.
  Job* JobOf(State& state, const std::string& name);
  // Starts the capture of a gathered incident, and sets `answer` to the result.
  void Start(State& state, Job& job, const std::string& job_name, Answer& answer);
  // Asks for the stacks of the incident's workers if the rule takes them.
  void CollectStacks(const TriggerRule& rule, const Job& job, const CaptureId& capture);
  // Fails with the error of the last attempt, or with FAILED_PRECONDITION if the rule allows none.
  absl::StatusOr<CaptureId> StartCapture(const TriggerRule& rule, const CaptureSpec& base,
                                         Job& job);
  // Counts a firing that makes no capture of its own.
  void Suppress(State& state, const Answer& answer);

  const Clock& clock_;
  TaskRunner& runner_;
  TriggerCaptures& captures_;
  std::map<std::string, State> states_;  // by name
  // Names in the order of the rule file.
  std::vector<std::string> order_;
  // Kept in case the rule file names them again; limited in number.
  std::map<std::string, State> restored_;  // of rules that do not exist now
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
