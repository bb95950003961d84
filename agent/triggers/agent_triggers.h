// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/source/neuron/capture/worker_watch.h"
#include "agent/triggers/event_rules.h"
#include "agent/triggers/execution_medians.h"
#include "agent/triggers/trigger_reports.h"
#include "agent/triggers/trigger_sink.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/event.h"
#include "lib/trace/ids.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

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
  enum class Posted { kReported, kNoRule, kNotPosted, kCoolsDown, kUndelivered };
  struct PostOutcome {
    Posted posted = Posted::kReported;
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
  void OnWorkerDied(const WorkerIdentity& worker, const std::string& job) override;
  void OnWorkerRemoved(const WorkerIdentity& worker) override;

 private:
  // Returns whether the rule applies to workers of this job.
  bool IsFor(const TriggerRule& rule, const std::string& job) const {
    return rule.job.empty() || rule.job == job;
  }
  // Takes the start or stop of an execution, and fires rules about slow ones. `core` is that of the
  // event.
  void TakeExecution(const NrtEvent& event, const EventInterest& interest, WatchedCore& core);
  // Reports an execution that took too long, or has not ended.
  void ReportSlow(const TriggerRule& rule, const WorkerIdentity& worker, const std::string& job,
                  uint32_t nc_idx, int64_t worker_gid, const ExecutionMedians::Taken& taken,
                  bool has_ended);
  // Evaluates the rules that depend on time, every 250 ms while there are any.
  void Tick();
  // Fire rules about cores without events, and about executions that do not end.
  void DetectSilence(const TriggerRule& rule, uint64_t now_ns);
  void DetectUnended(const TriggerRule& rule, uint32_t reporter, uint64_t now_ns);
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
  bool watches_events_ = false;
  bool watches_executions_ = false;
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
