// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/agent_triggers.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "lib/base/time_units.h"
#include "lib/trace/limits.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/trigger_rule_check.h"

// Events are judged as they are decoded (OnEvent); silence and executions that do not end are
// judged by a timer (Tick); deaths and requests at once. All reports pass through TriggerReports,
// which limits how often a rule reports one worker.
namespace neurontrace {
namespace {

// Workers are polled several times a second, so an older time means that reading lags behind.
constexpr uint64_t kDrainedLatelyNs = 1'000'000'000;

// How often rules that depend on time are evaluated; a report may be this much late.
constexpr uint64_t kTickNs = 250'000'000;
// An agent that stood still for longer has not read what came meanwhile, so silence of its cores
// means nothing.
constexpr uint64_t kPausedNs = 2'000'000'000;

// "rank 35, i-0abc pid 4711 nc 3".
std::string NameOf(const WorkerIdentity& worker, uint32_t nc_idx, int64_t worker_gid) {
  return fmt::format("{}{} nc {}", worker_gid < 0 ? "" : fmt::format("rank {}, ", worker_gid),
                     ToString(worker), nc_idx);
}

// Returns a duration as text for the cause of a report, in us, ms or s.
std::string DescribeTime(uint64_t ns) {
  if (ns < 10'000'000) return fmt::format("{:.1f} us", static_cast<double>(ns) * 1e-3);
  if (ns < 10'000'000'000) return fmt::format("{:.1f} ms", static_cast<double>(ns) * 1e-6);
  return FormatSeconds(ns);
}

// Returns true if the execution took more than `times` its median.
bool IsLate(const ExecutionMedians::Taken& taken, double times) {
  return taken.median_ns > 0 &&
         static_cast<double>(taken.ns) > times * static_cast<double>(taken.median_ns);
}

}  // namespace

WatchedCore& WatchedWorker::CoreAt(uint32_t nc_idx) {
  if (cores.size() <= nc_idx) cores.resize(nc_idx + 1);
  return cores[nc_idx];
}

void WatchedWorker::Rest() {
  for (WatchedCore& core : cores) {
    core.last_ns = 0;
    core.told.clear();
    if (core.executions != nullptr) core.executions->ForgetOpen();
  }
}

std::vector<SilentCore> FindSilentCores(std::map<WorkerIdentity, WatchedWorker>& workers,
                                        const std::string& rule, const std::string& job,
                                        uint64_t silent_ns, uint64_t now_ns) {
  // The latest event of each job. If the whole job is silent, no core is: it has paused or ended.
  std::map<std::string, uint64_t> newest_ns;  // by job
  for (const auto& [identity, worker] : workers) {
    uint64_t& newest = newest_ns[worker.job];
    for (const WatchedCore& core : worker.cores) newest = std::max(newest, core.last_ns);
  }
  std::vector<SilentCore> silent;
  for (auto& [identity, worker] : workers) {
    if (!job.empty() && job != worker.job) continue;
    if (worker.drained_ns == 0 || now_ns - worker.drained_ns > kDrainedLatelyNs) continue;
    // Another core of the job must have had an event recently: the last event of a silent core is
    // older than this.
    if (now_ns - newest_ns[worker.job] >= silent_ns / 2) continue;
    for (uint32_t nc_idx = 0; nc_idx < worker.cores.size(); ++nc_idx) {
      WatchedCore& core = worker.cores[nc_idx];
      if (core.last_ns == 0 || now_ns - core.last_ns < silent_ns) continue;
      if (!core.told.insert(rule).second) continue;
      silent.push_back({identity, worker.job, nc_idx, core.worker_gid, now_ns - core.last_ns});
    }
  }
  return silent;
}

AgentTriggers::AgentTriggers(std::string instance_id, const Clock& clock, TaskRunner& runner,
                             TriggerSink& sink)
    : instance_id_(std::move(instance_id)), clock_(clock), runner_(runner), reports_(clock, sink) {}

void AgentTriggers::SetRules(const std::vector<TriggerRule>& rules) {
  rules_.clear();
  for (const TriggerRule& rule : rules) {
    // A rule that this version cannot check must not stop the others.
    const absl::Status status = CheckTriggerRule(rule);
    if (status.ok() && rules_.size() < limits::kTriggerRulesMax) {
      rules_.push_back(rule);
      continue;
    }
    ++counters_.rules_refused;
    spdlog::warn("triggers: {}", std::string(status.message()));
  }
  const auto any = [this](auto condition) {
    return std::any_of(rules_.begin(), rules_.end(), condition);
  };
  watches_events_ = any([](const TriggerRule& rule) { return NeedsEvents(rule.kind); });
  watches_executions_ =
      any([](const TriggerRule& rule) { return rule.kind == TriggerKind::kSlowExecution; });
  event_rules_.SetRules(rules_);
  // What was learned about cores would be outdated when such a rule comes back.
  if (!watches_events_) workers_.clear();
  // BeginDocument sets it again; the current document is not continued under new rules.
  worker_ = nullptr;
  std::erase_if(posted_ns_, [&](const auto& entry) {
    return !any([&](const TriggerRule& rule) { return rule.name == entry.first; });
  });
  ScheduleTick();
}

// --- Events --------------------------------------------------------------------------------------

bool AgentTriggers::BeginDocument(const WorkerIdentity& worker, const std::string& job,
                                  uint64_t fetched_ns) {
  worker_ = nullptr;
  if (!watches_events_) return false;
  // Documents of other jobs are skipped as a whole, which saves the work for each of their events.
  const bool concerns = std::any_of(rules_.begin(), rules_.end(), [&](const TriggerRule& rule) {
    return NeedsEvents(rule.kind) && IsFor(rule, job);
  });
  if (!concerns) return false;
  const uint64_t now_ns = clock_.RealtimeNs();
  // A document that waited long in a buffer tells nothing about now.
  if (now_ns > fetched_ns && now_ns - fetched_ns > limits::kTriggerStaleNs) {
    ++counters_.stale;
    return false;
  }
  const auto [entry, is_new] = workers_.try_emplace(worker);
  identity_ = &entry->first;
  worker_ = &entry->second;
  worker_->job = job;
  read_ns_ = clock_.MonotonicNs();
  return true;
}

void AgentTriggers::OnEvent(const NrtEvent& event) {
  if (worker_ == nullptr) return;
  ++counters_.events;
  WatchedCore* core = nullptr;
  if (event.nc_idx < limits::kCoresPerWorkerMax) {
    core = &worker_->CoreAt(event.nc_idx);
    core->last_ns = read_ns_;
    // The core has spoken: its next silence is reported again.
    if (!core->told.empty()) core->told.clear();
    if ((event.shape->shape.present & FieldBit(Field::kWorkerGid)) != 0) {
      core->worker_gid = event.fields.worker_gid;
    }
  }
  const EventInterest& interest = event_rules_.InterestIn(*event.shape);
  if (core != nullptr && (interest.is_start || interest.is_stop)) {
    TakeExecution(event, interest, *core);
  }
}

void AgentTriggers::TakeExecution(const NrtEvent& event, const EventInterest& interest,
                                  WatchedCore& core) {
  const Shape& shape = event.shape->shape;
  const ExecutionMedians::Mark mark{
      .tracking_id = event.fields.tracking_id,
      .execution = NumberAt(shape, event.values, interest.execution),
      .device_ns = NumberAt(shape, event.values, interest.device_time),
      .model = NumberAt(shape, event.values, interest.model).value_or(0),
      .host_ns = event.fields.timestamp_ns,
      .read_ns = read_ns_};
  if (core.executions == nullptr) core.executions = std::make_unique<ExecutionMedians>();
  if (interest.is_start) return core.executions->Begin(mark);
  // Nothing if the start was not seen, or the median is not known yet.
  const auto taken = core.executions->End(mark);
  if (!taken) return;
  for (const TriggerRule& rule : rules_) {
    if (rule.kind != TriggerKind::kSlowExecution || !IsFor(rule, worker_->job)) continue;
    if (!IsLate(*taken, rule.times_median)) continue;
    ReportSlow(rule, *identity_, worker_->job, event.nc_idx, core.worker_gid, *taken, true);
  }
}

void AgentTriggers::ReportSlow(const TriggerRule& rule, const WorkerIdentity& worker,
                               const std::string& job, uint32_t nc_idx, int64_t worker_gid,
                               const ExecutionMedians::Taken& taken, bool has_ended) {
  const double times = static_cast<double>(taken.ns) / static_cast<double>(taken.median_ns);
  reports_.Report(
      {.rule = rule.name,
       .cause = fmt::format("{}: execution{} {} {}, {:.1f} times its median of {}",
                            NameOf(worker, nc_idx, worker_gid),
                            taken.execution ? fmt::format(" {}", *taken.execution) : "",
                            has_ended ? "took" : "has not ended after", DescribeTime(taken.ns),
                            times, DescribeTime(taken.median_ns)),
       .job = job,
       .worker = worker});
}

void AgentTriggers::OnTraceEdge(const WorkerIdentity& worker) {
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.Rest();
}

void AgentTriggers::OnPolled(const WorkerIdentity& worker, bool drained) {
  if (!drained || workers_.empty()) return;
  const auto found = workers_.find(worker);
  if (found != workers_.end()) found->second.drained_ns = clock_.MonotonicNs();
}

// --- Workers, people -----------------------------------------------------------------------------

void AgentTriggers::OnWorkerDied(const WorkerIdentity& worker, const std::string& job) {
  for (const TriggerRule& rule : rules_) {
    if (rule.kind != TriggerKind::kWorkerDied || !IsFor(rule, job)) continue;
    reports_.Report({.rule = rule.name,
                     .cause = fmt::format("{}: the process ended without closing its runtime",
                                          ToString(worker)),
                     .job = job,
                     .worker = worker});
  }
}

void AgentTriggers::OnWorkerRemoved(const WorkerIdentity& worker) {
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  // It may end while its last document is being read.
  if (worker_ == &found->second) worker_ = nullptr;
  workers_.erase(found);
}

AgentTriggers::PostOutcome AgentTriggers::Post(const std::string& name, const std::string& cause) {
  const auto rule = std::find_if(rules_.begin(), rules_.end(),
                                 [&](const TriggerRule& each) { return each.name == name; });
  if (rule == rules_.end()) return {Posted::kNoRule};
  if (rule->kind != TriggerKind::kPost) return {Posted::kNotPosted};
  const uint64_t now_ns = clock_.MonotonicNs();
  const auto before = posted_ns_.find(name);
  if (before != posted_ns_.end() && now_ns - before->second < rule->cool_down_ns) {
    return {Posted::kCoolsDown, rule->cool_down_ns - (now_ns - before->second)};
  }
  const auto outcome = reports_.Report(
      {.rule = name,
       .cause = fmt::format("{}: POST{}{}", instance_id_, cause.empty() ? "" : ": ", cause),
       .job = rule->job,
       .worker = {.instance_id = instance_id_}});
  if (outcome == TriggerReports::Outcome::kUndelivered) return {Posted::kUndelivered};
  if (outcome == TriggerReports::Outcome::kSuppressed) {
    return {Posted::kCoolsDown, limits::kTriggerReportIntervalNs};
  }
  posted_ns_[name] = now_ns;
  return {};
}

// --- By the clock --------------------------------------------------------------------------------

void AgentTriggers::ScheduleTick() {
  const bool wanted = std::any_of(rules_.begin(), rules_.end(), [](const TriggerRule& rule) {
    return rule.kind == TriggerKind::kSlowExecution || rule.kind == TriggerKind::kSilentCore;
  });
  if (!wanted || std::exchange(tick_scheduled_, true)) return;
  ticked_ns_ = clock_.MonotonicNs();
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] {
    tick_scheduled_ = false;
    Tick();
  }),
                          kTickNs);
}

void AgentTriggers::Tick() {
  const uint64_t now_ns = clock_.MonotonicNs();
  const uint64_t gap_ns = now_ns - ticked_ns_;
  // The agent was stopped or the machine suspended: the gap is added to all cores, so that their
  // silence is measured without it.
  if (gap_ns > kPausedNs) {
    for (auto& [identity, worker] : workers_) {
      for (WatchedCore& core : worker.cores) {
        if (core.last_ns != 0) core.last_ns = std::min(core.last_ns + gap_ns, now_ns);
      }
    }
  }
  // Each rule about executions has a number of its own, so that each reports an execution once.
  uint32_t reporter = 0;
  for (const TriggerRule& rule : rules_) {
    if (rule.kind == TriggerKind::kSilentCore) DetectSilence(rule, now_ns);
    if (rule.kind == TriggerKind::kSlowExecution) DetectUnended(rule, reporter++, now_ns);
  }
  counters_.looking_ns += clock_.MonotonicNs() - now_ns;
  ScheduleTick();
}

void AgentTriggers::DetectSilence(const TriggerRule& rule, uint64_t now_ns) {
  for (const SilentCore& core :
       FindSilentCores(workers_, rule.name, rule.job, rule.silent_ns, now_ns)) {
    reports_.Report({.rule = rule.name,
                     .cause = fmt::format(
                         "{}: no events for {}, while other cores of its job have events",
                         NameOf(core.worker, core.nc_idx, core.worker_gid), DescribeTime(core.ns)),
                     .job = core.job,
                     .worker = core.worker});
  }
}

void AgentTriggers::DetectUnended(const TriggerRule& rule, uint32_t reporter, uint64_t now_ns) {
  for (auto& [identity, worker] : workers_) {
    if (!IsFor(rule, worker.job) || worker.drained_ns == 0 ||
        now_ns - worker.drained_ns > ExecutionMedians::kUnendedMinNs / 2) {
      continue;
    }
    for (uint32_t nc_idx = 0; nc_idx < worker.cores.size(); ++nc_idx) {
      WatchedCore& core = worker.cores[nc_idx];
      if (core.executions == nullptr) continue;
      const auto taken = core.executions->FindUnended(now_ns, rule.times_median, reporter);
      if (!taken) continue;
      ReportSlow(rule, identity, worker.job, nc_idx, core.worker_gid, *taken, false);
    }
  }
}

}  // namespace neurontrace
