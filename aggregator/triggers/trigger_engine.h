// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
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
inline constexpr size_t kTriggerSuppressions = 7;
// Returns the label value in metrics, such as "cool_down".
std::string_view WordOf(TriggerSuppression reason);

// What the engine needs from its surroundings, called on its sequence. All functions must be set.
struct TriggerWorld {
  // Starts a capture; fails as Coordinator::StartCapture does.
  std::function<absl::StatusOr<CaptureId>(const CaptureSpec&)> start;
  // Returns true until the capture has ended.
  std::function<bool(const CaptureId&)> goes_on;
  // Returns the flight recorder that holds what a capture of this spec would select; empty: none.
  std::function<CaptureId(const CaptureSpec&)> flight_recorder;
  // Returns the capture that streams it and does not give way to another; empty: none.
  std::function<CaptureId(const CaptureSpec&)> recorded_by;
  // The continuous capture that records all of it and gives way to the trigger's capture; empty:
  // none.
  struct Continuous {
    CaptureId id;
    uint64_t retention_ns = 0;  // 0: limited by size alone
  };
  std::function<Continuous(const CaptureSpec&)> continuous;
};

// A rule with its history, for operators.
struct TriggerStatus {
  TriggerRule rule;
  uint64_t fired = 0;
  uint64_t suppressed = 0;
  uint64_t last_fired_realtime_ns = 0;
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

  // All must outlive the engine.
  TriggerEngine(const Clock& clock, TaskRunner& runner, TriggerWorld world);
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

  // The result of Fire, which does not wait for further reports. `retry_ns`: when to try again, for
  // kCoolDown and kPerHour.
  struct Answer {
    bool is_known = false;
    CaptureId capture;  // the new one, or the one already running
    TriggerSuppression suppression = TriggerSuppression::kNone;
    std::string problem;  // why there is no new one
    uint64_t retry_ns = 0;
  };
  Answer Fire(const TriggerFired& fired);

  const TriggerRule* Find(const std::string& name) const;
  std::vector<TriggerStatus> List() const;  // in the order of the rules

  struct Counters {
    uint64_t fired = 0;
    std::array<uint64_t, kTriggerSuppressions> suppressed{};
    uint64_t unknown = 0;  // reports of rules that do not exist
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Job {
    int64_t fired_ns = 0;                     // monotonic; negative: before the machine started
    bool has_fired = false;                   // otherwise fired_ns has no meaning
    uint64_t rest_ns = 0;                     // upper limit of its cool-down
    CaptureId capture;                        // the last one, possibly running
    std::optional<TriggerIncident> incident;  // of that, or gathering
    bool gathering = false;
    std::optional<CaptureSpec> stream;  // to start if the snapshot does not begin
  };
  struct State {
    TriggerStatus status;
    std::deque<int64_t> hour;  // monotonic times of the last hour
    std::map<std::string, Job> jobs;
  };

  int64_t NowNs() const { return static_cast<int64_t>(clock_.MonotonicNs()); }
  // Returns what prevents a capture, or kNone.
  Answer Judge(State& state, Job& job, const TriggerFired& fired);
  bool IsHourFull(State& state, Answer& answer);
  void TakeBack(State& state, Job& job, const CaptureId& capture, const std::string& why);
  Job* JobOf(State& state, const std::string& name);
  void Start(State& state, Job& job, const std::string& job_name, Answer& answer);
  absl::StatusOr<CaptureId> StartCapture(const TriggerRule& rule, const CaptureSpec& base,
                                         Job& job);
  void Suppress(State& state, const Answer& answer);

  const Clock& clock_;
  TaskRunner& runner_;
  const TriggerWorld world_;
  std::map<std::string, State> states_;  // by name
  std::vector<std::string> order_;
  std::map<std::string, State> restored_;  // of rules that do not exist now
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
