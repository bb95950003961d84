// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/worker_silence.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

// An aggregator that was stopped for longer has missed reports, so that time does not count.
constexpr uint64_t kPausedNs = 2'000'000'000;

}  // namespace

// What was counted before stays valid under changed rules, as it is not specific to one.
void WorkerSilence::SetRules(const std::vector<TriggerRule>& rules) {
  rules_.clear();
  std::copy_if(rules.begin(), rules.end(), std::back_inserter(rules_),
               [](const auto& rule) { return rule.kind == TriggerKind::kSilentCore; });
  if (rules_.empty()) workers_.clear();
}

void WorkerSilence::OnStatus(const CaptureWorkerStatus& status, const std::string& job,
                             uint64_t now_ns) {
  if (rules_.empty() || status.framework) return;
  const Key key(status.capture_id, status.worker);
  const auto known = workers_.find(key);
  if (status.state != CaptureWorkerState::kRecording || status.events_read == 0) {
    if (known != workers_.end()) workers_.erase(known);
    return;
  }
  if (known == workers_.end() && workers_.size() >= limits::kTriggerWorkersWatchedMax) {
    ++not_watched_;
    return;
  }
  Worker& worker = known == workers_.end() ? workers_[key] : known->second;
  worker.job = job;
  if (worker.events_read == status.events_read) return;
  worker.events_read = status.events_read;
  worker.changed_ns = now_ns;
  // The silence is over, so the next one fires again.
  worker.told.clear();
}

void WorkerSilence::KeepOnly(const std::function<bool(const CaptureId&)>& is_running) {
  std::erase_if(workers_, [&](const auto& entry) { return !is_running(entry.first.first); });
}

WorkerSilence::Group WorkerSilence::GroupOf(const Key& key, const Worker& worker) {
  return {worker.job, worker.job.empty() ? key.first : CaptureId()};
}

// First moves the clocks of workers about which nothing is known, then finds the newest event of
// each group, and finally compares each worker with its group. Its cost is the number of rules
// times that of workers.
std::vector<TriggerFired> WorkerSilence::Judge(
    uint64_t now_ns, const std::function<bool(const WorkerIdentity&)>& is_reporting) {
  std::vector<TriggerFired> fired;
  const uint64_t gap_ns = judged_ns_ == 0 ? 0 : now_ns - judged_ns_;
  judged_ns_ = now_ns;
  std::map<Group, uint64_t> newest_ns;
  for (auto& [key, worker] : workers_) {
    // Time in which nothing could be observed does not count as silence.
    if (gap_ns > kPausedNs || !is_reporting(key.second)) worker.changed_ns += gap_ns;
    worker.changed_ns = std::min(worker.changed_ns, now_ns);
    uint64_t& newest = newest_ns[GroupOf(key, worker)];
    newest = std::max(newest, worker.changed_ns);
  }
  // A worker fires only if others of its group have had events within half of the rule's time. A
  // whole job that pauses thus fires nothing.
  for (const TriggerRule& rule : rules_) {
    for (auto& [key, worker] : workers_) {
      const uint64_t silent_ns = now_ns - worker.changed_ns;
      if (silent_ns < rule.silent_ns || worker.told.contains(rule.name)) continue;
      if (!rule.job.empty() && rule.job != worker.job) continue;
      // The whole group is quiet. The worker itself cannot be the newest, as it has been silent for
      // longer.
      if (now_ns - newest_ns.at(GroupOf(key, worker)) >= rule.silent_ns / 2) continue;
      worker.told.insert(rule.name);
      fired.push_back(
          {.rule = rule.name,
           .cause = fmt::format("{}: none of its cores has had an event for {:.1f} s, while other "
                                "workers of its job have",
                                ToString(key.second), static_cast<double>(silent_ns) * 1e-9),
           .job = worker.job,
           .worker = key.second});
    }
  }
  return fired;
}

}  // namespace neurontrace
