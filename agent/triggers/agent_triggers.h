// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/source/neuron/worker_watch.h"
#include "agent/triggers/core_watch.h"
#include "agent/triggers/event_rules.h"
#include "agent/triggers/trigger_reports.h"
#include "base/clock.h"
#include "base/task_runner.h"
#include "base/weak_tasks.h"
#include "trace/ids.h"
#include "trace/trigger_rule.h"

namespace neurontrace {

// The rules of triggers as one agent sees them: what its workers' events tell, what becomes of its
// workers, and what it is asked by name. It decides nothing but that a rule
// fires; the aggregator makes captures of it. Without rules it costs nothing, and without rules
// that look at events nothing an event. On the agent's sequence.
class AgentTriggers final : public WorkerWatch {
 public:
  struct Counters {
    uint64_t events = 0;         // looked at
    uint64_t stale = 0;          // documents not judged, because they were fetched long ago
    uint64_t rules_refused = 0;  // that an aggregator sent and that make no sense
    uint64_t looking_ns = 0;     // spent on what is judged by the clock
  };
  // What a POST comes to.
  enum class Posted { kTold, kNoRule, kNotPosted, kCoolsDown, kUnheard };
  struct PostOutcome {
    Posted posted = Posted::kTold;
    uint64_t retry_ns = 0;  // kCoolsDown
  };

  // `instance_id` is this machine's. All references outlive this.
  AgentTriggers(std::string instance_id, const Clock& clock, TaskRunner& runner,
                TriggerReports::Send send);
  AgentTriggers(const AgentTriggers&) = delete;
  AgentTriggers& operator=(const AgentTriggers&) = delete;

  // These take the place of all before. Of cores that were watched already, what is known stays.
  void SetRules(const std::vector<TriggerRule>& rules);
  // Fires a rule of kPost, unless it was fired here within its cool-down.
  PostOutcome Post(const std::string& rule, const std::string& cause);

  size_t rules() const { return rules_.size(); }
  const Counters& counters() const { return counters_; }
  const TriggerReports::Counters& reports() const { return reports_.counters(); }

  // WorkerWatch
  bool BeginDocument(const WorkerIdentity& worker, const std::string& job,
                     uint64_t fetched_ns) override;
  void OnEvent(const NrtEvent& event) override;
  void OnTraceEdge(const WorkerIdentity& worker) override;
  void OnLookedAt(const WorkerIdentity& worker, bool drained) override;
  void OnDied(const WorkerIdentity& worker, const std::string& job) override;
  void OnGone(const WorkerIdentity& worker) override;

 private:
  bool IsFor(const TriggerRule& rule, const std::string& job) const {
    return rule.job.empty() || rule.job == job;
  }
  void TakeExecution(const NrtEvent& event, const EventInterest& interest, WatchedCore& core);
  void TellSlow(const TriggerRule& rule, const WorkerIdentity& worker, const std::string& job,
                uint32_t nc_idx, int64_t worker_gid, const ExecutionMedians::Taken& taken,
                bool has_ended);
  void Tick();
  void LookForSilence(const TriggerRule& rule, uint64_t now_ns);
  void LookForUnended(const TriggerRule& rule, uint32_t teller, uint64_t now_ns);
  void ScheduleTick();

  const std::string instance_id_;
  const Clock& clock_;
  TaskRunner& runner_;
  TriggerReports reports_;

  std::vector<TriggerRule> rules_;
  EventRules event_rules_;
  bool looks_at_events_ = false;
  bool looks_at_executions_ = false;
  std::map<WorkerIdentity, WatchedWorker> workers_;  // while a rule looks at events
  std::map<std::string, uint64_t> posted_ns_;        // by rule, monotonic

  // The document at hand.
  const WorkerIdentity* identity_ = nullptr;
  WatchedWorker* worker_ = nullptr;
  uint64_t read_ns_ = 0;

  uint64_t ticked_ns_ = 0;
  bool tick_scheduled_ = false;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
