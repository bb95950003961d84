// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/trigger_service.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "aggregator/access/system_audit_events.h"
#include "aggregator/session/capture_request.h"
#include "aggregator/triggers/trigger_incident.h"
#include "aggregator/triggers/verdict_selection.h"
#include "lib/base/clean_text.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/trigger_file.h"
#include "lib/triggers/trigger_rule_check.h"
#include "lib/triggers/verdict_patterns.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace {
namespace {

// How often silence is judged and metrics are published.
constexpr uint64_t kSilenceCheckIntervalNs = 500'000'000;
// Agents report changes every half second, and that they are alive every two.
constexpr uint64_t kRecentReportNs = 5'000'000'000;
// How long a POST waits for the sequence before it is answered with 503.
constexpr std::chrono::milliseconds kPostPatience{5'000};

// Returns whether everything that `narrow` selects is recorded by `wide`. Any restriction of `wide`
// other than its job counts as selecting less.
bool SelectsAllOf(const CaptureSpec& wide, const CaptureSpec& narrow) {
  return (wide.selection.job.empty() || wide.selection.job == narrow.selection.job) &&
         wide.selection.instance_ids.empty() && wide.selection.neuron_cores.empty() &&
         wide.selection.job_facts.empty() && wide.selection.worker_gids.empty() &&
         wide.filter.include_neuron;
}

// Returns whether a capture holds its workers or is about to.
bool IsInProgress(CaptureState state) {
  return state == CaptureState::kArming || state == CaptureState::kRecording;
}

// NotBegin has made the reason the first warning of the end.
std::string NotBegunReason(const CaptureRecord& record) {
  return record.end_warnings.empty() ? "" : record.end_warnings.front();
}

}  // namespace

TriggerService::Metrics::Metrics(prometheus::Registry& registry)
    : rules(MakeGauge(registry, "neurontrace_aggregator_trigger_rules", "Trigger rules in effect")),
      file_good(MakeGauge(registry, "neurontrace_aggregator_trigger_file_valid",
                          "0 while the rule file is invalid and the previous rules are in effect")),
      fired(MakeCounter(registry, "neurontrace_aggregator_triggers_fired_total",
                        "Captures requested by triggers; those that did not start also count as "
                        "suppressed, with reason refused")),
      unknown(MakeCounter(registry, "neurontrace_aggregator_triggers_unknown_total",
                          "Triggers that fired without a matching rule")),
      foreign(MakeCounter(registry, "neurontrace_aggregator_triggers_foreign_total",
                          "Triggers ignored because the reporting agent has no such worker or the "
                          "rule is for a different job")),
      not_watched(MakeCounter(registry, "neurontrace_aggregator_trigger_workers_not_watched_total",
                              "Reports of workers beyond the limit for silence detection")),
      judging_seconds(MakeCounter(registry, "neurontrace_aggregator_trigger_seconds_total",
                                  "Time spent on evaluating rules")) {
  auto& family = MakeCounterFamily(registry, "neurontrace_aggregator_triggers_suppressed_total",
                                   "Times that a rule fired without starting a capture, by reason");
  for (size_t i = 1; i < kTriggerSuppressions; ++i) {
    suppressed[i] =
        &family.Add({{"reason", std::string(ToString(static_cast<TriggerSuppression>(i)))}});
  }
}

absl::StatusOr<std::unique_ptr<TriggerService::RuleFile>> TriggerService::OpenRules(
    const std::string& path, const Clock& clock) {
  if (path.empty()) return nullptr;
  auto file = std::make_unique<RuleFile>(path, ReadTriggerFile, clock);
  RETURN_IF_ERROR(file->Load());
  SPDLOG_INFO("{} trigger rules in {}", file->contents().size(), path);
  return file;
}

TriggerService::TriggerService(std::unique_ptr<RuleFile> rules, TriggerPosts posts,
                               const Deps& deps)
    : deps_(deps),
      posts_from_anywhere_(posts != TriggerPosts::kThisMachine),
      engine_(deps.clock, deps.sequence, *this),
      metrics_(deps.registry),
      file_(std::move(rules)) {
  if (file_ != nullptr) rules_ = file_->contents();
}

// Every attempt is in the audit log, because nobody requested it personally.
absl::StatusOr<CaptureId> TriggerService::Start(const CaptureSpec& spec) {
  const absl::StatusOr<CaptureRecord> record = deps_.coordinator.StartCapture(spec);
  deps_.audit.Write(StartedByRule(spec.name, spec, record));
  RETURN_IF_ERROR(record.status());
  // StartCapture succeeds if the capture exists; it may have ended already for lack of workers.
  if (record->state == CaptureState::kNotBegun) {
    return FailedPrecondition("capture {} did not start: {}", record->id.ToString(),
                              NotBegunReason(*record));
  }
  SPDLOG_INFO("capture {}: {}", record->id.ToString(), spec.cause);
  return record->id;
}

// --- Rules ---------------------------------------------------------------------------------------

void TriggerService::ReloadFile(bool force) {
  if (file_ == nullptr || !file_->Poll(force)) return;
  const std::string& problem = file_->problem();
  if (problem.empty()) {
    SPDLOG_INFO("{} trigger rules in {}", file_->contents().size(), file_->path());
  } else {
    SPDLOG_WARN("triggers: the previous rules stay in effect: {}", problem);
  }
  // Copies, because the sequence must not touch the file object of this thread.
  deps_.sequence.PostTask([this, rules = file_->contents(), problem] {
    if (rules != rules_) Apply(rules);
    file_problem_ = problem;
  });
}

// Agents are sent all rules and not the difference, so a lost order does no harm. A returning agent
// gets them after its welcome.
void TriggerService::Apply(std::vector<TriggerRule> rules) {
  rules_ = std::move(rules);
  ++version_;
  engine_.SetRules(rules_);
  silence_.SetRules(rules_);
  const v1::AgentOrder order = RulesOrder();
  for (const auto& [agent_id, agent] : deps_.coordinator.registry().agents()) {
    if (agent.connection) deps_.connections.Send(*agent.connection, order);
  }
}

v1::AgentOrder TriggerService::RulesOrder() const {
  v1::AgentOrder order;
  v1::SetTriggersOrder& triggers = *order.mutable_set_triggers();
  triggers.set_version(version_);
  // Agents know nothing of verdicts.
  for (const TriggerRule& rule : rules_) {
    if (rule.kind != TriggerKind::kVerdict) ToProto(rule, triggers.add_rules());
  }
  return order;
}

void TriggerService::Tick() {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  if (now_ns < judged_ns_ + kSilenceCheckIntervalNs) return;
  judged_ns_ = now_ns;
  if (silence_.has_rules()) CheckSilentWorkers(now_ns);
  PublishMetrics();
}

// Only agents that have reported lately are evidence: silence of a worker whose agent is silent
// means nothing.
void TriggerService::CheckSilentWorkers(uint64_t now_ns) {
  silence_.KeepOnly([this](const CaptureId& id) { return IsRunning(id); });
  // An index by instance, because every worker is looked up.
  std::map<std::string_view, const KnownAgent*> has_reported;
  const uint64_t realtime_ns = deps_.clock.RealtimeNs();
  for (const auto& [agent_id, agent] : deps_.coordinator.registry().agents()) {
    const bool is_reporting = agent.last_seen_realtime_ns + kRecentReportNs >= realtime_ns;
    if (agent.connection && is_reporting) has_reported[agent.info.instance_id] = &agent;
  }
  const auto is_reporting = [&has_reported](const WorkerIdentity& worker) {
    const auto agent = has_reported.find(worker.instance_id);
    return agent != has_reported.end() && agent->second->workers.contains(worker);
  };
  for (const TriggerFired& fired : silence_.Judge(now_ns, is_reporting)) engine_.OnFired(fired);
  judging_ns_ += deps_.clock.MonotonicNs() - now_ns;
}

void TriggerService::OnCaptureChanged(const CaptureRecord& record) {
  if (record.state == CaptureState::kNotBegun) engine_.OnNotBegun(record, NotBegunReason(record));
}

void TriggerService::PublishMetrics() {
  const TriggerEngine::Counters& counters = engine_.counters();
  metrics_.rules.Set(static_cast<double>(rules_.size()));
  metrics_.file_good.Set(file_problem_.empty() ? 1 : 0);
  RaiseCounter(metrics_.fired, static_cast<double>(counters.fired));
  RaiseCounter(metrics_.unknown, static_cast<double>(counters.unknown));
  RaiseCounter(metrics_.foreign, static_cast<double>(foreign_));
  RaiseCounter(metrics_.not_watched, static_cast<double>(silence_.not_watched()));
  RaiseCounter(metrics_.judging_seconds, static_cast<double>(judging_ns_) * 1e-9);
  for (size_t i = 1; i < kTriggerSuppressions; ++i) {
    RaiseCounter(*metrics_.suppressed[i], static_cast<double>(counters.suppressed[i]));
  }
}

// --- Agents --------------------------------------------------------------------------------------

void TriggerService::OnFired(const std::string& agent_id, const TriggerFired& reported) {
  TriggerFired fired = reported;
  const KnownAgent* const agent = deps_.coordinator.registry().Find(agent_id);
  if (agent == nullptr) return;
  // An agent can report only about its own instance, and about the jobs of its own workers.
  fired.worker.instance_id = agent->info.instance_id;
  const TriggerRule* const rule = engine_.Find(fired.rule);
  if (rule != nullptr && !TakeJobFromInventory(agent->workers, rule, fired)) {
    ++foreign_;
    return;
  }
  engine_.OnFired(fired);
}

// Reports about workers of other instances are ignored, as an agent knows only its own.
void TriggerService::OnWorkerStatus(const std::string& agent_id,
                                    const CaptureWorkerStatus& status) {
  if (!silence_.has_rules()) return;
  const KnownAgent* const agent = deps_.coordinator.registry().Find(agent_id);
  if (agent == nullptr || status.worker.instance_id != agent->info.instance_id) return;
  const auto worker = agent->workers.find(status.worker);
  silence_.OnStatus(status, worker == agent->workers.end() ? "" : worker->second.job,
                    deps_.clock.MonotonicNs());
}

// A rule of another job than the verdict's is not concerned.
void TriggerService::OnVerdict(const LiveVerdict& verdict) {
  for (const TriggerRule& rule : rules_) {
    if (rule.kind != TriggerKind::kVerdict || !MatchesVerdict(rule.verdicts, verdict.kind))
      continue;
    if (!rule.job.empty() && rule.job != verdict.job) continue;
    TriggerFired fired{.rule = rule.name,
                       .cause = verdict.text,
                       .job = verdict.job,
                       .narrowed = SelectionOf(verdict, rule.peers)};
    if (!verdict.suspects.empty()) fired.worker = verdict.suspects.front().worker;
    for (const VerdictCore& core : verdict.suspects) fired.suspects.push_back(core.worker);
    for (size_t i = 0; i < std::min<size_t>(rule.peers, verdict.peers.size()); ++i) {
      fired.suspects.push_back(verdict.peers[i].worker);
    }
    engine_.OnFired(fired);
  }
}

// --- Captures that there are ---------------------------------------------------------------------

// A continuous capture keeps flight recorders from using the rings. If several recorders match, it
// is unknown which one is meant.
CaptureId TriggerService::FlightRecorderOf(const CaptureSpec& spec) const {
  CaptureId found;
  for (const CaptureRecord& record : deps_.coordinator.Running()) {
    if (!CanOverlap(record.spec, spec) || !IsInProgress(record.state)) continue;
    if (record.spec.mode == CaptureMode::kContinuous) return {};
    if (record.spec.mode != CaptureMode::kFlightRecorder) continue;
    if (!found.empty()) return {};
    if (record.state == CaptureState::kRecording) found = record.id;
  }
  return found;
}

// A capture that a person requested continues, and every worker in it would refuse another one.
CaptureId TriggerService::RecorderOf(const CaptureSpec& spec) const {
  for (const CaptureRecord& record : deps_.coordinator.Running()) {
    const bool is_snapshot = record.spec.mode == CaptureMode::kSnapshot;
    const bool records = record.spec.mode == CaptureMode::kStream && IsInProgress(record.state);
    if ((is_snapshot || records) && SelectsAllOf(record.spec, spec)) return record.id;
  }
  return {};
}

TriggerCaptures::Continuous TriggerService::ContinuousOf(const CaptureSpec& spec) const {
  for (const CaptureRecord& record : deps_.coordinator.Running()) {
    const bool records =
        record.spec.mode == CaptureMode::kContinuous && record.state == CaptureState::kRecording;
    if (records && SelectsAllOf(record.spec, spec))
      return {record.id, record.spec.retention.duration_ns};
  }
  return {};
}

bool TriggerService::Records(const TriggerRule& rule,
                             const std::function<bool(const CaptureSpec&)>& fits) const {
  CaptureSpec spec;
  spec.selection.job = rule.job;
  const std::vector<CaptureRecord> running = deps_.coordinator.Running();
  return std::any_of(running.begin(), running.end(), [&](const CaptureRecord& record) {
    return record.state == CaptureState::kRecording && CanOverlap(record.spec, spec) &&
           fits(record.spec);
  });
}

// Helps with rules that never fire: nothing else shows that no events reach the agents.
std::string TriggerService::CannotFireReason(const TriggerRule& rule) const {
  const AgentRegistry& registry = deps_.coordinator.registry();
  if (rule.kind == TriggerKind::kPost) return "";
  if (registry.connected() == 0) return "cannot fire now: no agent is connected";
  if (rule.kind == TriggerKind::kVerdict) {
    if (Records(rule, [](const CaptureSpec& spec) { return spec.watch; })) return "";
    return fmt::format(
        "sees no verdicts now: no watch is on{}; turn one on with neurontrace watch on",
        rule.job.empty() ? "" : " for job " + rule.job);
  }
  if (!NeedsEvents(rule.kind)) return "";
  const bool sees = Records(rule, [](const CaptureSpec& spec) {
    return spec.mode == CaptureMode::kStream || spec.mode == CaptureMode::kContinuous;
  });
  if (sees) return "";
  return fmt::format(
      "sees no events now: no capture streams{}; a flight recorder does not stream events, but a "
      "continuous capture does",
      rule.job.empty() ? "" : " of job " + rule.job);
}

// --- Operators -----------------------------------------------------------------------------------

v1::ListTriggersReply TriggerService::List() const {
  v1::ListTriggersReply reply;
  if (file_ != nullptr) {
    reply.set_file(file_->path());
    reply.set_problem(CleanText(file_problem_, limits::kDetailBytesMax));
  }
  for (const TriggerStatus& status : engine_.List()) {
    v1::Trigger& trigger = *reply.add_triggers();
    ToProto(status.rule, trigger.mutable_rule());
    trigger.set_fired(status.fired);
    trigger.set_suppressed(status.suppressed);
    trigger.set_last_fired_realtime_ns(status.last_fired_realtime_ns);
    trigger.set_last_cause(status.last_cause);
    if (!status.last_capture.empty()) trigger.set_last_capture_id(status.last_capture.ToString());
    const std::string blind = CannotFireReason(status.rule);
    const bool both = !blind.empty() && !status.last_problem.empty();
    trigger.set_last_problem(blind + (both ? "; last: " : "") + status.last_problem);
  }
  return reply;
}

v1::FireTriggerReply TriggerService::Fire(const v1::FireTriggerRequest& request) {
  const std::string cause = CutCause(request.cause(), limits::kDetailBytesMax);
  const TriggerEngine::Answer answer =
      engine_.Fire({.rule = request.name(),
                    .cause = fmt::format("fired manually{}{}", cause.empty() ? "" : ": ", cause)});
  v1::FireTriggerReply reply;
  if (answer.suppression == TriggerSuppression::kNone && !answer.capture.empty()) {
    reply.set_capture_id(answer.capture.ToString());
  } else {
    reply.set_problem(answer.problem);
  }
  return reply;
}

PostPage TriggerService::MakePostPage() {
  return {.prefix = "/triggers/",
          .body_bytes_max = limits::kTriggerBodyBytesMax,
          .is_for_anybody = posts_from_anywhere_,
          .handler = this};
}

// 503 asks the caller to try again after a second.
PostAnswer TriggerService::TakePost(const PostRequest& request) {
  const auto answer = PostAndWait(deps_.sequence, "the aggregator", kPostPatience,
                                  [this, &request] { return Post(request); });
  if (answer.ok()) return *answer;
  return {503, std::string(answer.status().message()) + "\n", 1};
}

// A rule of another kind is refused with 404: its condition is observed by agents, and a POST must
// not be able to claim it.
PostAnswer TriggerService::Post(const PostRequest& request) {
  const TriggerRule* const rule = engine_.Find(request.name);
  if (rule == nullptr) return {404, "no such rule\n"};
  if (rule->kind != TriggerKind::kPost) {
    return {404,
            fmt::format("the rule has `when = \"{}\"`, but only `when = \"post\"` accepts a POST\n",
                        ToString(rule->kind))};
  }
  const std::string cause = CutCause(request.body, limits::kDetailBytesMax);
  const TriggerEngine::Answer answer = engine_.Fire(
      {.rule = request.name, .cause = fmt::format("POST{}{}", cause.empty() ? "" : ": ", cause)});
  if (answer.suppression == TriggerSuppression::kCoolDown ||
      answer.suppression == TriggerSuppression::kPerHour) {
    // Retry-After has whole seconds; one more never lets the caller come too early.
    return {429, answer.problem + "\n", answer.retry_ns / 1'000'000'000 + 1};
  }
  if (answer.suppression == TriggerSuppression::kNone) {
    return {202, fmt::format("capture {}\n", answer.capture.ToString())};
  }
  return {202, fmt::format("no new capture: {}\n", answer.problem)};
}

}  // namespace neurontrace
