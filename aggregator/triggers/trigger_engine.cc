// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/trigger_engine.h"

#include <algorithm>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/trigger_limits.h"
#include "lib/triggers/trigger_rule_check.h"

namespace neurontrace {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000;
// Rules of stored captures that are kept until the rule file shows whether they still exist.
constexpr size_t kRestoredRulesMax = 4 * limits::kTriggerRulesMax;

// Whole seconds, rounded up.
std::string FormatWholeSeconds(uint64_t ns) {
  return DescribeDuration((ns + kNsPerSecond - 1) / kNsPerSecond * kNsPerSecond);
}

// Says which continuous capture has the earlier events, or all of them, and for how long.
std::string DescribeEarlierCapture(const TriggerCaptures::Continuous& continuous, bool before) {
  std::string words =
      before ? fmt::format("earlier events are in continuous capture {}", continuous.id.ToString())
             : fmt::format("continuous capture {} records it", continuous.id.ToString());
  words += continuous.retention_ns == 0 ? ", while its size allows"
                                        : ", for " + DescribeDuration(continuous.retention_ns);
  return words;
}

// Returns the cause for the capture's record. `more` is never cut; the incident's text is, to stay
// within limits::kDetailBytesMax.
std::string CauseOf(const TriggerRule& rule, const TriggerIncident& incident,
                    const std::string& more) {
  std::string cause = CutCause(fmt::format("trigger {}: {}", rule.name, incident.Cause()),
                               limits::kDetailBytesMax - more.size());
  return cause + more;
}

}  // namespace

std::string_view ToString(TriggerSuppression reason) {
  constexpr std::string_view kWords[] = {"none",     "same_incident", "cool_down",    "per_hour",
                                         "recorded", "refused",       "too_many_jobs"};
  static_assert(std::size(kWords) == kTriggerSuppressions);
  return kWords[static_cast<size_t>(reason)];
}

TriggerEngine::TriggerEngine(const Clock& clock, TaskRunner& runner, TriggerCaptures& captures)
    : clock_(clock), runner_(runner), captures_(captures) {}

// A timestamp in the future comes from a clock that was set back since and counts as now.
void TriggerEngine::Restore(const CaptureRecord& record) {
  const auto& labels = record.spec.labels;
  const auto label = std::find_if(labels.begin(), labels.end(),
                                  [](const KeyValue& each) { return each.key == kLabel; });
  if (label == labels.end()) return;
  // A store with captures of many removed rules must not fill the memory.
  if (!restored_.contains(label->value) && restored_.size() >= kRestoredRulesMax) return;
  State& state = restored_[label->value];
  const uint64_t now_ns = clock_.RealtimeNs();
  const uint64_t began_ns = std::min(record.started_realtime_ns, now_ns);
  // Converted to the monotonic clock, because steps of the wall clock must not end a cool-down.
  const int64_t fired_ns = NowNs() - static_cast<int64_t>(now_ns - began_ns);
  const bool has_begun = record.state != CaptureState::kNotBegun;
  state.status.fired += has_begun;
  if (has_begun && NowNs() - fired_ns < kHourNs) state.hour.push_back(fired_ns);
  std::sort(state.hour.begin(), state.hour.end());
  if (state.hour.size() > limits::kTriggerPerHourMax) state.hour.pop_front();
  if (has_begun && began_ns >= state.status.last_fired_realtime_ns) {
    state.status.last_fired_realtime_ns = began_ns;
    state.status.last_cause = record.spec.cause;
    state.status.last_capture = record.id;
  }
  Job* const job = JobOf(state, record.spec.selection.job);
  // Captures are passed in any order; the latest one counts.
  if (job == nullptr || (job->has_fired && job->fired_ns > fired_ns)) return;
  job->has_fired = true;
  job->fired_ns = fired_ns;
  // The rule's own cool-down is not known yet; the lesser of both applies.
  job->rest_ns = has_begun ? limits::kTriggerCoolDownMaxNs : kRefusedRestNs;
  job->capture = record.id;
}

// A rule is identified by its name: one that was renamed starts without history.
void TriggerEngine::SetRules(const std::vector<TriggerRule>& rules) {
  std::map<std::string, State> next;
  order_.clear();
  for (const TriggerRule& rule : rules) {
    order_.push_back(rule.name);
    State& state = next[rule.name];
    if (const auto known = states_.find(rule.name); known != states_.end()) {
      state = std::move(known->second);
    } else if (const auto stored = restored_.find(rule.name); stored != restored_.end()) {
      state = std::move(stored->second);
      restored_.erase(stored);
    }
    state.status.rule = rule;
  }
  // Removing a rule and adding it again must not end its cool-down.
  for (auto& [name, state] : states_) {
    if (next.contains(name) || restored_.size() >= kRestoredRulesMax) continue;
    // The posted task must not start a capture for it.
    for (auto& [job_name, job] : state.jobs) job.gathering = false;
    restored_[name] = std::move(state);
  }
  states_ = std::move(next);
}

const TriggerRule* TriggerEngine::Find(const std::string& name) const {
  const auto found = states_.find(name);
  return found == states_.end() ? nullptr : &found->second.status.rule;
}

std::vector<TriggerStatus> TriggerEngine::List() const {
  std::vector<TriggerStatus> list;
  for (const std::string& name : order_) list.push_back(states_.at(name).status);
  return list;
}

TriggerEngine::Job* TriggerEngine::JobOf(State& state, const std::string& name) {
  if (const auto known = state.jobs.find(name); known != state.jobs.end()) return &known->second;
  if (state.jobs.size() >= limits::kTriggerJobsMax) {
    const auto cool_down_ns = static_cast<int64_t>(state.status.rule.cool_down_ns);
    // Forgets jobs that no longer limit anything: not gathering, cooled down and without a running
    // capture.
    std::erase_if(state.jobs, [&](const auto& entry) {
      const Job& job = entry.second;
      return !job.gathering && NowNs() - job.fired_ns >= cool_down_ns &&
             (job.capture.empty() || !captures_.IsRunning(job.capture));
    });
    if (state.jobs.size() >= limits::kTriggerJobsMax) return nullptr;
  }
  return &state.jobs[name];
}

// Checks in the order of what is most useful to report: an incident in progress, the cool-down of
// the job, then the hourly limit of the rule.
TriggerEngine::Answer TriggerEngine::Judge(State& state, Job& job, const TriggerFired& fired) {
  const TriggerRule& rule = state.status.rule;
  Answer answer{.is_known = true};
  const auto suppress = [&answer](TriggerSuppression why, std::string words) {
    answer.suppression = why;
    answer.problem = std::move(words);
    return answer;
  };
  const bool in_progress = !job.capture.empty() && captures_.IsRunning(job.capture);
  if (job.gathering || in_progress) {
    if (job.incident) {
      job.incident->Add(fired);
      state.status.last_cause = job.incident->Cause();
    }
    // A capture that is about to start has no id yet.
    answer.capture = job.gathering ? CaptureId() : job.capture;
    return suppress(TriggerSuppression::kSameIncident,
                    job.gathering
                        ? "its capture is about to start"
                        : fmt::format("its capture {} is running", job.capture.ToString()));
  }
  const int64_t now_ns = NowNs();
  const auto cool_down_ns = static_cast<int64_t>(std::min(rule.cool_down_ns, job.rest_ns));
  if (job.has_fired && now_ns - job.fired_ns < cool_down_ns) {
    answer.retry_ns = static_cast<uint64_t>(cool_down_ns - (now_ns - job.fired_ns));
    return suppress(
        TriggerSuppression::kCoolDown,
        fmt::format("rate limited: the trigger is in its cool-down period for another {}",
                    FormatWholeSeconds(answer.retry_ns)));
  }
  IsHourFull(state, answer);
  return answer;
}

bool TriggerEngine::IsHourFull(State& state, Answer& answer) {
  const int64_t now_ns = NowNs();
  const uint32_t most = state.status.rule.per_hour_max;
  while (!state.hour.empty() && now_ns - state.hour.front() >= kHourNs) state.hour.pop_front();
  if (state.hour.size() < most) return false;
  // The rule may have got a lower limit since, so more than `most` times can be in the list.
  const size_t first = state.hour.size() - most;
  answer.retry_ns = static_cast<uint64_t>(kHourNs - (now_ns - state.hour[first]));
  answer.suppression = TriggerSuppression::kPerHour;
  answer.problem =
      fmt::format("rate limited: it has fired {} times within an hour, and per-hour is {}",
                  state.hour.size(), most);
  return true;
}

void TriggerEngine::Suppress(State& state, const Answer& answer) {
  ++state.status.suppressed;
  ++counters_.suppressed[static_cast<size_t>(answer.suppression)];
  // Being part of an incident is no problem that an operator should see.
  if (answer.suppression != TriggerSuppression::kSameIncident) {
    state.status.last_problem = answer.problem;
  }
}

// Waits kGatherNs before it starts a capture. Many ranks report one incident within that time, and
// the cause should count them.
void TriggerEngine::OnFired(const TriggerFired& fired) {
  const auto found = states_.find(fired.rule);
  if (found == states_.end()) {
    // Rules may have been removed while the report was under way.
    ++counters_.unknown;
    return;
  }
  State& state = found->second;
  const std::string job_name = fired.job.empty() ? state.status.rule.job : fired.job;
  Job* const job = JobOf(state, job_name);
  Answer answer{.is_known = true,
                .suppression = TriggerSuppression::kTooManyJobs,
                .problem = fmt::format("it has fired for {} jobs, which is the limit",
                                       limits::kTriggerJobsMax)};
  if (job != nullptr) answer = Judge(state, *job, fired);
  if (answer.suppression != TriggerSuppression::kNone) return Suppress(state, answer);
  job->incident.emplace(fired);
  job->gathering = true;
  runner_.PostDelayedTask(weak_tasks_.Wrap([this, rule = fired.rule, job_name] {
    // Rules may have changed since.
    const auto still = states_.find(rule);
    if (still == states_.end()) return;
    const auto entry = still->second.jobs.find(job_name);
    if (entry == still->second.jobs.end() || !entry->second.gathering) return;
    Answer outcome;
    Start(still->second, entry->second, job_name, outcome);
  }),
                          kGatherNs);
}

// Unlike OnFired, answers at once: whoever fires a rule by hand waits for the result.
TriggerEngine::Answer TriggerEngine::Fire(const TriggerFired& fired) {
  const auto found = states_.find(fired.rule);
  if (found == states_.end()) {
    ++counters_.unknown;
    return {.problem = fmt::format("no rule is named '{}'",
                                   CleanText(fired.rule, limits::kTriggerNameBytesMax))};
  }
  State& state = found->second;
  const std::string job_name = fired.job.empty() ? state.status.rule.job : fired.job;
  Job* const job = JobOf(state, job_name);
  if (job == nullptr) {
    const Answer answer{.is_known = true,
                        .suppression = TriggerSuppression::kTooManyJobs,
                        .problem = fmt::format("it has fired for {} jobs, which is the limit",
                                               limits::kTriggerJobsMax)};
    Suppress(state, answer);
    return answer;
  }
  Answer answer = Judge(state, *job, fired);
  if (answer.suppression != TriggerSuppression::kNone) {
    Suppress(state, answer);
    return answer;
  }
  job->incident.emplace(fired);
  Start(state, *job, job_name, answer);
  return answer;
}

void TriggerEngine::Start(State& state, Job& job, const std::string& job_name, Answer& answer) {
  job.gathering = false;
  const TriggerRule& rule = state.status.rule;
  // Other jobs of the rule may have fired while this one gathered.
  if (IsHourFull(state, answer)) return Suppress(state, answer);
  CaptureSpec spec;
  spec.name = rule.name;
  spec.selection = job.incident->narrowed();
  spec.selection.job = job_name;
  spec.labels.push_back({std::string(kLabel), rule.name});
  // A continuous capture is suspended for others, so it is only mentioned, unless the rule asks for
  // nothing but the past.
  const TriggerCaptures::Continuous continuous = captures_.ContinuousOf(spec);
  spec.cause = CauseOf(
      rule, *job.incident,
      continuous.id.empty() ? "" : fmt::format("; {}", DescribeEarlierCapture(continuous, true)));
  state.status.last_cause = job.incident->Cause();
  job.capture = CaptureId();
  // Its workers would refuse a second capture.
  if (const CaptureId other = captures_.RecorderOf(spec); !other.empty()) {
    answer.capture = other;
    answer.suppression = TriggerSuppression::kRecorded;
    answer.problem = fmt::format("capture {} already records it", other.ToString());
    CollectStacks(rule, job, other);
    return Suppress(state, answer);
  }
  // A rule that only wants the past has it already.
  if (!continuous.id.empty() && rule.duration_ns == 0) {
    answer.capture = continuous.id;
    answer.suppression = TriggerSuppression::kRecorded;
    answer.problem =
        fmt::format("{}; export it, or set record-for to capture the following events separately",
                    DescribeEarlierCapture(continuous, false));
    CollectStacks(rule, job, continuous.id);
    return Suppress(state, answer);
  }
  // The cool-down starts even if the capture is then refused. Otherwise a rule that fires
  // constantly would retry with every report.
  job.has_fired = true;
  job.fired_ns = NowNs();
  job.rest_ns = limits::kTriggerCoolDownMaxNs;
  // A refused capture uses up neither the hour's number nor the whole cool-down.
  const absl::StatusOr<CaptureId> capture = StartCapture(rule, spec, job);
  if (!capture.ok()) {
    job.rest_ns = kRefusedRestNs;
    answer.suppression = TriggerSuppression::kRefused;
    answer.problem = std::string(capture.status().message());
    return Suppress(state, answer);
  }
  answer.capture = job.capture = *capture;
  state.hour.push_back(job.fired_ns);
  ++state.status.fired;
  ++counters_.fired;
  state.status.last_fired_realtime_ns = clock_.RealtimeNs();
  state.status.last_capture = *capture;
  state.status.last_problem.clear();
  CollectStacks(rule, job, *capture);
}

void TriggerEngine::CollectStacks(const TriggerRule& rule, const Job& job,
                                  const CaptureId& capture) {
  if (!rule.stacks) return;
  captures_.CollectStacks(capture, rule, job.incident->Cause(), job.incident->Suspects());
}

// Takes a snapshot of the past if a flight recorder holds it, otherwise streams what follows.
absl::StatusOr<CaptureId> TriggerEngine::StartCapture(const TriggerRule& rule,
                                                      const CaptureSpec& base, Job& job) {
  absl::Status why = FailedPrecondition(
      "no flight recorder is on{}, and record-for is 0; turn one on, or set record-for",
      base.selection.job.empty() ? "" : fmt::format(" for job {}", base.selection.job));
  CaptureSpec stream = base;
  stream.timing.duration_ns = rule.duration_ns;
  job.stream.reset();
  if (rule.last_ns > 0) {
    CaptureSpec snapshot = base;
    snapshot.mode = CaptureMode::kSnapshot;
    snapshot.timing.last_ns = rule.last_ns;
    snapshot.timing.flight_recorder = captures_.FlightRecorderOf(base);
    if (!snapshot.timing.flight_recorder.empty()) {
      absl::StatusOr<CaptureId> capture = captures_.Start(snapshot);
      if (capture.ok()) {
        // Kept in case no worker can deliver the past.
        if (rule.duration_ns > 0) job.stream = std::move(stream);
        return capture;
      }
      why = capture.status();
    }
  }
  if (rule.duration_ns == 0) return why;
  return captures_.Start(stream);
}

// The cool-down is shortened, so that the rule can fire again soon.
void TriggerEngine::Undo(State& state, Job& job, const CaptureId& capture, const std::string& why) {
  job.rest_ns = kRefusedRestNs;
  // A capture that did not start must not use up the hour's number.
  if (const auto fired = std::find(state.hour.begin(), state.hour.end(), job.fired_ns);
      fired != state.hour.end()) {
    state.hour.erase(fired);
  }
  if (state.status.fired > 0) --state.status.fired;
  Suppress(state, {.is_known = true,
                   .suppression = TriggerSuppression::kRefused,
                   .problem = fmt::format("capture {} did not start{}{}", capture.ToString(),
                                          why.empty() ? "" : ": ", why)});
}

// The job is found by the capture's id; captures of other origin match none.
void TriggerEngine::OnNotBegun(const CaptureRecord& record, const std::string& why) {
  for (auto& [name, state] : states_) {
    const auto entry = state.jobs.find(record.spec.selection.job);
    if (entry == state.jobs.end() || entry->second.capture != record.id) continue;
    Job& job = entry->second;
    job.capture = CaptureId();  // the same capture can be reported again
    if (!job.stream) return Undo(state, job, record.id, why);
    // Keeps others from starting one until the posted task runs; the firing still counts.
    job.gathering = true;
    auto start = [this, rule = name, job_name = record.spec.selection.job, id = record.id,
                  stream = *std::exchange(job.stream, std::nullopt), why] {
      const auto still = states_.find(rule);
      if (still == states_.end()) return;
      const auto of_job = still->second.jobs.find(job_name);
      if (of_job == still->second.jobs.end()) return;
      if (!std::exchange(of_job->second.gathering, false)) return;
      const absl::StatusOr<CaptureId> capture = captures_.Start(stream);
      if (!capture.ok()) {
        return Undo(still->second, of_job->second, id,
                    fmt::format("{}; {}", why, std::string(capture.status().message())));
      }
      of_job->second.capture = still->second.status.last_capture = *capture;
    };
    // Posted, because this may be called from within the coordinator.
    return runner_.PostTask(weak_tasks_.Wrap(std::move(start)));
  }
}

}  // namespace neurontrace
