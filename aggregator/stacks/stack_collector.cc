// SPDX-License-Identifier: Apache-2.0
#include "aggregator/stacks/stack_collector.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <utility>

#include "aggregator/stacks/stack_report.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/limits.h"
#include "lib/trace/stacks_limits.h"
#include "lib/wire/stacks_codec.h"

namespace neurontrace {
namespace {

// A member whose connected agent does not have the worker in its inventory any more.
constexpr char kEndedText[] = "the process has ended";
constexpr char kNoAgentText[] = "its agent is not connected";
constexpr char kNoAnswerText[] =
    "its agent did not answer in time; it may be older than the aggregator";

bool IsNewer(const v1::StacksReport& a, const v1::StacksReport& b) {
  return a.asked_realtime_ns() > b.asked_realtime_ns();
}

}  // namespace

StackCollector::Metrics::Metrics(prometheus::Registry& registry)
    : collections(MakeCounter(registry, "neurontrace_aggregator_stacks_collections_total",
                              "Collections of stacks that agents were asked for")),
      refused(MakeCounter(registry, "neurontrace_aggregator_stacks_refused_total",
                          "Collections of stacks that were refused, as others were under way")),
      ignored(MakeCounter(registry, "neurontrace_aggregator_stacks_ignored_total",
                          "Stacks of workers that came too late or were not asked for")),
      not_stored(MakeCounter(registry, "neurontrace_aggregator_stacks_not_stored_total",
                             "Merged stacks that could not be stored")) {}

StackCollector::StackCollector(const Deps& deps) : deps_(deps), metrics_(deps.metrics) {}

absl::StatusOr<v1::StacksReport> StackCollector::Collect(const CaptureId& capture,
                                                         const std::string& reason,
                                                         std::vector<WorkerIdentity> workers) {
  std::sort(workers.begin(), workers.end());
  workers.erase(std::unique(workers.begin(), workers.end()), workers.end());
  if (workers.empty()) return InvalidArgument("no worker is selected; see neurontrace workers");
  if (workers.size() > limits::kStacksWorkersMax) {
    return InvalidArgument("{} workers are selected; the limit is {}: choose with --worker-gid",
                           workers.size(), limits::kStacksWorkersMax);
  }
  const bool is_in_progress =
      std::any_of(collections_.begin(), collections_.end(),
                  [&capture](const auto& entry) { return entry.second.capture == capture; });
  if (is_in_progress || collections_.size() >= limits::kStacksCollectionsMax) {
    metrics_.refused.Increment();
    return FailedPrecondition("stacks of {} are being collected; try again in a minute",
                              is_in_progress ? "this capture" : "too many captures");
  }
  const uint64_t number = ++last_;
  Collection& collection = collections_[number];
  collection.capture = capture;
  collection.report.set_capture_id(capture.ToString());
  collection.report.set_reason(CleanText(reason, limits::kDetailBytesMax));
  collection.report.set_asked_realtime_ns(deps_.clock.RealtimeNs());
  std::map<ConnectionId, std::vector<WorkerIdentity>> orders;
  for (const WorkerIdentity& worker : workers) AddMember(worker, collection, orders);
  for (auto& [connection, asked] : orders) {
    v1::AgentOrder order;
    ToProto(StacksOrder{capture, number, std::move(asked)}, order.mutable_collect_stacks());
    deps_.orders.Send(connection, std::move(order));
  }
  metrics_.collections.Increment();
  Publish(collection);
  const v1::StacksReport report = collection.report;
  if (report.pending() == 0) {
    Finish(number);
    return report;
  }
  deps_.sequence.PostDelayedTask(weak_tasks_.Wrap([this, number] { Finish(number); }),
                                 limits::kStacksAnswerNs);
  return report;
}

void StackCollector::AddMember(const WorkerIdentity& worker, Collection& collection,
                               std::map<ConnectionId, std::vector<WorkerIdentity>>& orders) const {
  v1::StacksReport& report = collection.report;
  const auto index = static_cast<uint32_t>(report.members_size());
  v1::StacksMember& member = *report.add_members();
  member.set_instance_id(worker.instance_id);
  member.set_pid(worker.pid);
  collection.members[worker] = index;
  collection.agents.emplace_back();
  report.set_pending(report.pending() + 1);
  bool is_connected = false;
  for (const auto& [agent_id, agent] : deps_.registry.agents()) {
    if (agent.info.instance_id != worker.instance_id) continue;
    is_connected = is_connected || agent.connection.has_value();
    const auto& inventory = agent.connection ? agent.workers : agent.last_workers;
    const auto known = inventory.find(worker);
    if (known == inventory.end()) continue;
    for (const CoreInfo& core : known->second.cores) {
      if (!core.rank_evidence.empty()) {
        member.add_worker_gids(core.rank_evidence.front().worker_gid);
      }
    }
    const bool is_first = index == 0;
    if (is_first) report.set_job(known->second.job);
    if (report.job() != known->second.job) report.clear_job();
    if (!agent.connection) continue;
    collection.agents[index] = agent_id;
    orders[*agent.connection].push_back(worker);
    return;
  }
  SetOutcome(collection, index,
             is_connected ? v1::STACKS_OUTCOME_ENDED : v1::STACKS_OUTCOME_NO_ANSWER,
             is_connected ? kEndedText : kNoAgentText);
}

void StackCollector::SetOutcome(Collection& collection, uint32_t member, v1::StacksOutcome outcome,
                                const std::string& detail) const {
  v1::StacksMember& of = *collection.report.mutable_members(static_cast<int>(member));
  of.set_outcome(outcome);
  of.set_detail(detail);
  collection.report.set_pending(collection.report.pending() - 1);
}

void StackCollector::CollectFor(const std::string& caller, const CaptureId& capture,
                                const std::string& reason, std::vector<WorkerIdentity> workers) {
  if (workers.empty()) return;
  if (workers.size() > limits::kStacksWorkersMax) workers.resize(limits::kStacksWorkersMax);
  const auto report = Collect(capture, reason, std::move(workers));
  deps_.audit.Write({.action = "stacks.collect",
                     .caller = caller,
                     .capture = capture.ToString(),
                     .job = report.ok() ? report->job() : "",
                     .detail = reason,
                     .outcome = report.status()});
  if (!report.ok()) {
    SPDLOG_WARN("stacks for {} are not collected: {}", caller,
                std::string(report.status().message()));
  }
}

// Only the agent that was asked may answer, once.
void StackCollector::OnStacks(const std::string& agent_id, const WorkerStacks& stacks) {
  const auto found = collections_.find(stacks.collection);
  const bool is_known = found != collections_.end() && found->second.capture == stacks.capture_id &&
                        found->second.members.contains(stacks.worker);
  if (!is_known) return metrics_.ignored.Increment();
  Collection& collection = found->second;
  const uint32_t index = collection.members.at(stacks.worker);
  v1::StacksMember& member = *collection.report.mutable_members(static_cast<int>(index));
  if (collection.agents[index] != agent_id || member.outcome() != v1::STACKS_OUTCOME_UNSPECIFIED) {
    return metrics_.ignored.Increment();
  }
  SetOutcome(collection, index, static_cast<v1::StacksOutcome>(stacks.outcome), stacks.detail);
  member.set_threads(static_cast<uint32_t>(stacks.threads.size()));
  member.set_left_out(stacks.left_out);
  for (const KernelThread& thread : stacks.kernel_threads) {
    ToProto(thread, member.add_kernel_threads());
  }
  member.set_kernel_threads_left_out(stacks.kernel_threads_left_out);
  collection.tree.Add(index, stacks.threads, stacks.worker.pid);
  if (collection.report.pending() == 0) return Finish(stacks.collection);
  Publish(collection);
}

// Called at the last answer or when the time is over, whatever comes first.
void StackCollector::Finish(uint64_t number) {
  const auto found = collections_.find(number);
  if (found == collections_.end()) return;
  Collection& collection = found->second;
  for (int i = 0; i < collection.report.members_size(); ++i) {
    if (collection.report.members(i).outcome() == v1::STACKS_OUTCOME_UNSPECIFIED) {
      SetOutcome(collection, static_cast<uint32_t>(i), v1::STACKS_OUTCOME_NO_ANSWER, kNoAnswerText);
    }
  }
  FillReport(collection.tree, collection.report);
  Publish(collection);
  const auto done = weak_tasks_.Wrap(
      [this, key = std::pair(collection.capture, collection.report.job()),
       asked_ns = collection.report.asked_realtime_ns()](const absl::Status& status) {
        if (status.ok()) return;
        metrics_.not_stored.Increment();
        SPDLOG_WARN("merged stacks of capture {} are not stored: {}", key.first.ToString(),
                    status.ToString());
        const MutexLock lock(mutex_);
        const auto report = reports_.find(key);
        if (report == reports_.end() || report->second.asked_realtime_ns() != asked_ns) return;
        report->second.set_problem(std::string(status.message()));
      });
  deps_.files.Store(collection.capture, collection.report, done);
  collections_.erase(found);
}

void StackCollector::OnVerdict(const LiveVerdict& verdict) {
  if (!verdict.kind.starts_with("hang-")) return;
  std::set<WorkerIdentity> workers;
  for (const VerdictCore& core : verdict.suspects) workers.insert(core.worker);
  // Peers, so that there is something to differ from.
  size_t peers = 0;
  for (const VerdictCore& core : verdict.peers) {
    if (peers == limits::kStacksPeers) break;
    if (workers.insert(core.worker).second) ++peers;
  }
  CollectFor("watch", verdict.capture, verdict.text, {workers.begin(), workers.end()});
}

void StackCollector::Publish(const Collection& collection) {
  v1::StacksReport report = collection.report;
  FillReport(collection.tree, report);
  const MutexLock lock(mutex_);
  reports_[{collection.capture, report.job()}] = std::move(report);
  if (reports_.size() <= limits::kStacksReportsMax) return;
  reports_.erase(
      std::max_element(reports_.begin(), reports_.end(),
                       [](const auto& a, const auto& b) { return IsNewer(a.second, b.second); }));
}

absl::StatusOr<std::vector<v1::StacksReport>> StackCollector::Reports(const CaptureId& capture) {
  std::vector<v1::StacksReport> reports;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, report] : reports_) {
      if (key.first == capture) reports.push_back(report);
    }
  }
  ASSIGN_OR_RETURN(const std::vector<v1::StacksReport> stored, deps_.files.Load(capture));
  reports.insert(reports.end(), stored.begin(), stored.end());
  std::stable_sort(reports.begin(), reports.end(), IsNewer);
  std::set<std::string> jobs;
  std::erase_if(reports, [&jobs](const v1::StacksReport& report) {
    return !jobs.insert(report.job()).second;
  });
  if (reports.size() > limits::kStacksReportsShown) reports.resize(limits::kStacksReportsShown);
  return reports;
}

}  // namespace neurontrace
