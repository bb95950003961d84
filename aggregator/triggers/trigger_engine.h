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

// Why a rule that fired made no capture of its own.
enum class TriggerSuppression : uint8_t {
  kNone = 0,
  kSameIncident,  // counted into the capture that another one makes
  kCoolDown,
  kPerHour,
  kRecorded,    // another capture records it
  kRefused,     // the capture could not be begun
  kTooManyJobs  // beyond limits::kTriggerJobsMax
};
inline constexpr size_t kTriggerSuppressions = 7;
// "cool_down", as metrics have it.
std::string_view WordOf(TriggerSuppression reason);

// What the engine asks and does, on its sequence. All have to be there.
struct TriggerWorld {
  // Begins a capture; errors as Coordinator::StartCapture.
  std::function<absl::StatusOr<CaptureId>(const CaptureSpec&)> start;
  // True until the capture has ended.
  std::function<bool(const CaptureId&)> goes_on;
  // The flight recorder that holds what a capture of this spec would select; empty: none.
  std::function<CaptureId(const CaptureSpec&)> flight_recorder;
  // The capture that streams it and gives way to no other; empty: none.
  std::function<CaptureId(const CaptureSpec&)> recorded_by;
  // The continuous capture that records all of it; empty: none. It gives way to the trigger's.
  struct Continuous {
    CaptureId id;
    uint64_t retention_ns = 0;  // 0: it keeps by size alone
  };
  std::function<Continuous(const CaptureSpec&)> continuous;
};

struct TriggerStatus {
  TriggerRule rule;
  uint64_t fired = 0;
  uint64_t suppressed = 0;
  uint64_t last_fired_realtime_ns = 0;
  std::string last_cause;
  CaptureId last_capture;
  std::string last_problem;  // why the last one made no capture; empty: it did
};

// Makes captures of what rules say: one for an incident, however many ranks report it; none within
// the rule's cool-down for the same job, none beyond its number an hour, one at a time. What is
// remembered from before a restart is read off the captures that were stored: each has the label
// kLabel. On one sequence.
class TriggerEngine {
 public:
  static constexpr std::string_view kLabel = kTriggerTag;
  // How long others are waited for after the first, so that the cause can count them.
  static constexpr uint64_t kGatherNs = 100'000'000;
  // How long it cools down at most after a capture that could not be begun.
  static constexpr uint64_t kRefusedRestNs = 10'000'000'000;

  // All outlive the engine.
  TriggerEngine(const Clock& clock, TaskRunner& runner, TriggerWorld world);
  TriggerEngine(const TriggerEngine&) = delete;
  TriggerEngine& operator=(const TriggerEngine&) = delete;

  // A capture of an earlier run of the aggregator; before the first rules.
  void Restore(const CaptureRecord& record);
  // These take the place of those before; of one that keeps its name, all that is known stays.
  void SetRules(const std::vector<TriggerRule>& rules);

  // An agent says that a rule fires. One that is not there (any more) is counted and nothing else.
  void OnFired(const TriggerFired& fired);

  // A capture has ended without having begun, and `why`. It counts for nothing: the rule may fire
  // again soon, and where it was a snapshot it is streamed instead. Of captures that are none of
  // this nothing is done. May be called from within the coordinator: begins nothing itself.
  void OnNotBegun(const CaptureRecord& record, const std::string& why);

  // Somebody asks for it by name: nothing is waited for. `retry_ns`: when it may be tried again,
  // with kCoolDown and kPerHour.
  struct Answer {
    bool is_known = false;
    CaptureId capture;  // also of the one under way
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
    uint64_t unknown = 0;  // rules that are not there
  };
  const Counters& counters() const { return counters_; }

 private:
  struct Job {
    int64_t fired_ns = 0;                     // monotonic; below 0: before the machine's start
    bool has_fired = false;                   // else fired_ns says nothing
    uint64_t rest_ns = 0;                     // it cools down for so long at most
    CaptureId capture;                        // the last; perhaps under way
    std::optional<TriggerIncident> incident;  // of that, or gathering
    bool gathering = false;
    std::optional<CaptureSpec> stream;  // to be begun instead of a snapshot that does not begin
  };
  struct State {
    TriggerStatus status;
    std::deque<int64_t> hour;  // when it fired in the last hour, monotonic
    std::map<std::string, Job> jobs;
  };

  int64_t NowNs() const { return static_cast<int64_t>(clock_.MonotonicNs()); }
  // Nothing stands against it, or what does.
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
  std::map<std::string, State> restored_;  // of rules that are not there, from stored captures
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
