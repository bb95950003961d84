// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/capture/worker_watch.h"
#include "agent/source/shape_cache.h"
#include "agent/triggers/execution_medians.h"
#include "agent/triggers/trigger_sink.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/event.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// Reports rules that fire to the aggregator, each at most once a second for the same worker. On the
// agent's sequence.
class TriggerReports {
 public:
  struct Counters {
    uint64_t fired = 0;       // reported
    uint64_t suppressed = 0;  // within a second of one, or beyond limits::kTriggerReportsKeptMax
    uint64_t unheard = 0;     // there was no aggregator
  };
  // kUnheard: it was not sent and does not count as recent, so the next one is tried at once.
  enum class Outcome { kTold, kSuppressed, kUnheard };

  // Both outlive it.
  TriggerReports(const Clock& clock, TriggerSink& sink) : clock_(clock), sink_(sink) {}

  // Sends a report, with the current time filled in. The cause may be any text; it is cleaned and
  // cut.
  Outcome Tell(TriggerFired fired);
  const Counters& counters() const { return counters_; }

 private:
  using Key = std::pair<std::string, WorkerIdentity>;

  const Clock& clock_;
  TriggerSink& sink_;
  // Pairs of rule and worker that were reported within limits::kTriggerReportIntervalNs.
  std::set<Key> lately_;
  std::deque<std::pair<uint64_t, Key>> by_time_;  // the same, monotonic
  Counters counters_;
};

// What rules want of events of one shape, determined once for each shape. Bounds the cost of an
// event to one look-up in a vector.
struct EventInterest {
  // Set once the shape was examined, whatever the result.
  bool is_known = false;
  bool is_start = false;  // of an execution on a core
  bool is_stop = false;
  int8_t execution = -1;  // where among its values these numbers are; below 0: nowhere
  int8_t model = -1;
  int8_t device_time = -1;
};

// Decides by the types of events which of them rules have to examine. On one sequence.
class EventRules {
 public:
  // Forgets all interests, as the new rules may have others.
  void SetRules(const std::vector<TriggerRule>& rules);
  // Returns the interest in events of this shape. Valid until the next call of any function.
  const EventInterest& InterestIn(const CachedShape& shape);

 private:
  // Without such a rule no shape is of interest.
  bool executions_ = false;               // a rule looks at them
  std::vector<EventInterest> interests_;  // by CachedShape::number
  uint32_t generation_ = 0;
};

// Returns the number at `index`, written as a number or in quotes; nothing if it is none. Pure.
// `values` has one value for each key of the shape, and `index` is one of FindNumber or below 0.
std::optional<uint64_t> NumberAt(const Shape& shape, std::span<const AttributeValue> values,
                                 int8_t index);

// One core of a worker, as rules see it.
struct WatchedCore {
  uint64_t last_ns = 0;  // when an event of it was read last, monotonic; 0: never
  int64_t worker_gid = -1;
  std::unique_ptr<ExecutionMedians> executions;  // only where a rule looks at them
  // Emptied by each event of the core.
  std::set<std::string> told;  // rules that have fired of its silence
};

// One worker, as rules see it. A plain value.
struct WatchedWorker {
  std::string job;
  // Events may still be on their way while this is old, so the worker is not judged then.
  uint64_t drained_ns = 0;         // when all that it had was read last, monotonic; 0: never
  std::vector<WatchedCore> cores;  // by nc_idx

  // `nc_idx` is below limits::kCoresPerWorkerMax, which the caller checks. The reference is valid
  // until the next call, as the table may grow.
  WatchedCore& CoreAt(uint32_t nc_idx);
  // Expects nothing of any core until it has an event again.
  void Rest();
};

// A core that was silent for `silent_ns`, or longer, while others of its job were not.
struct SilentCore {
  WorkerIdentity worker;
  std::string job;
  uint32_t nc_idx = 0;
  int64_t worker_gid = -1;
  // How long it has been silent, in nanoseconds.
  uint64_t ns = 0;
};

// Returns the cores that are silent at `now_ns` (monotonic), and marks them as reported, so a core
// is reported once for each silence. Skips cores that were reported for `rule` until they have an
// event again. Does not judge workers whose buffers were not read completely of late, as their
// events may be on the way. `job` empty: of any job. The cost is linear in the cores of all
// workers.
std::vector<SilentCore> FindSilentCores(std::map<WorkerIdentity, WatchedWorker>& workers,
                                        const std::string& rule, const std::string& job,
                                        uint64_t silent_ns, uint64_t now_ns);

// The rules of triggers as one agent evaluates them: by the events of its workers, by how its
// workers end, and by requests with a rule's name. It only decides that a rule fires; the
// aggregator decides what follows
// (docs/decisions/0019-rules-fire-on-agents-and-the-aggregator-decides.md). Without rules it costs
// nothing, and without rules about events it costs nothing for an event. On the agent's sequence.
// Owned by Agent, which passes it to the tap source as the watch and to the page POST
// /triggers/NAME.
class AgentTriggers final : public WorkerWatch {
 public:
  // Since construction; only grow.
  struct Counters {
    uint64_t events = 0;         // looked at
    uint64_t stale = 0;          // documents not judged, because they were fetched long ago
    uint64_t rules_refused = 0;  // that an aggregator sent and that make no sense
    uint64_t looking_ns = 0;     // spent on what is judged by the clock
  };
  // The result of a POST: reported; no such rule; a rule of another kind; in its cool-down period;
  // or no aggregator connected.
  enum class Posted { kTold, kNoRule, kNotPosted, kCoolsDown, kUnheard };
  struct PostOutcome {
    Posted posted = Posted::kTold;
    // How long to wait before the next attempt, in nanoseconds.
    uint64_t retry_ns = 0;  // kCoolsDown
  };

  // `instance_id` is that of this machine. All references outlive this.
  AgentTriggers(std::string instance_id, const Clock& clock, TaskRunner& runner, TriggerSink& sink);
  AgentTriggers(const AgentTriggers&) = delete;
  AgentTriggers& operator=(const AgentTriggers&) = delete;

  // Replaces all rules. Invalid ones are counted and skipped, as a newer aggregator may have more
  // kinds. What is known about cores that were watched already is kept.
  void SetRules(const std::vector<TriggerRule>& rules);
  // Fires a rule of kind kPost, unless it fired here within its cool-down period. `cause` is the
  // caller's text and may hold anything.
  PostOutcome Post(const std::string& rule, const std::string& cause);

  size_t rules() const { return rules_.size(); }
  const Counters& counters() const { return counters_; }
  const TriggerReports::Counters& reports() const { return reports_.counters(); }

  // WorkerWatch
  bool BeginDocument(const WorkerIdentity& worker, const std::string& job,
                     uint64_t fetched_ns) override;
  void OnEvent(const NrtEvent& event) override;
  void OnTraceEdge(const WorkerIdentity& worker) override;
  void OnPolled(const WorkerIdentity& worker, bool drained) override;
  void OnDied(const WorkerIdentity& worker, const std::string& job) override;
  void OnGone(const WorkerIdentity& worker) override;

 private:
  // Returns whether the rule applies to workers of this job.
  bool IsFor(const TriggerRule& rule, const std::string& job) const {
    return rule.job.empty() || rule.job == job;
  }
  // Takes the start or stop of an execution, and fires rules about slow ones. `core` is that of the
  // event.
  void TakeExecution(const NrtEvent& event, const EventInterest& interest, WatchedCore& core);
  // Reports an execution that took too long, or has not ended.
  void TellSlow(const TriggerRule& rule, const WorkerIdentity& worker, const std::string& job,
                uint32_t nc_idx, int64_t worker_gid, const ExecutionMedians::Taken& taken,
                bool has_ended);
  // Evaluates the rules that depend on time, every 250 ms while there are any.
  void Tick();
  // Fire rules about cores without events, and about executions that do not end.
  void LookForSilence(const TriggerRule& rule, uint64_t now_ns);
  void LookForUnended(const TriggerRule& rule, uint32_t teller, uint64_t now_ns);
  void ScheduleTick();

  // Names this machine in reports that no worker caused.
  const std::string instance_id_;
  const Clock& clock_;
  TaskRunner& runner_;
  TriggerReports reports_;

  // As the aggregator sent them, without those that are invalid.
  std::vector<TriggerRule> rules_;
  EventRules event_rules_;
  // Computed by SetRules, so that an agent without such rules pays one comparison for a document.
  bool looks_at_events_ = false;
  bool looks_at_executions_ = false;
  std::map<WorkerIdentity, WatchedWorker> workers_;  // while a rule looks at events
  std::map<std::string, uint64_t> posted_ns_;        // by rule, monotonic

  // The document at hand. Both point into workers_; null between documents that no rule concerns.
  const WorkerIdentity* identity_ = nullptr;
  WatchedWorker* worker_ = nullptr;
  // Monotonic times when the document was read, and when rules were last evaluated by the clock.
  uint64_t read_ns_ = 0;

  uint64_t ticked_ns_ = 0;
  // A task for Tick is posted; it posts the next one itself.
  bool tick_scheduled_ = false;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
