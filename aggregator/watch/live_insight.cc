// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/live_insight.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "aggregator/insight/absent_ranks.h"
#include "aggregator/insight/verdict_text.h"
#include "aggregator/operator/insight_message.h"
#include "lib/base/status.h"
#include "lib/trace/columns_compression.h"
#include "lib/trace/event_filter.h"

namespace neurontrace {
namespace {

// Linux gives the thread a tenth of what others get of a processor. See DigestService.
constexpr int kWatchNiceness = 10;
// Chunks that are read before it is looked whether it is time to judge.
constexpr size_t kChunksPerRound = 256;
// How long the thread waits for chunks before it looks whether it is to end.
constexpr uint64_t kPatienceNs = 200'000'000;

// Returns when something that began at `began_ns` and ended at `now_ns` is due again, so that it
// takes at most 1 / `pause` of a processor, if that is possible.
uint64_t DueAfter(uint64_t began_ns, uint64_t now_ns, uint64_t pause) {
  return began_ns + std::clamp((now_ns - began_ns) * pause, limits::kWatchJudgeMinNs,
                               limits::kWatchJudgeMaxNs);
}

// Returns what the session knows of a capture's workers.
absl::flat_hash_map<WorkerIdentity, WorkerView> WorkersOf(const CaptureRecord& record,
                                                          const AgentRegistry& registry,
                                                          uint64_t realtime_ns,
                                                          uint64_t monotonic_ns) {
  absl::flat_hash_map<WorkerIdentity, WorkerView> workers;
  absl::flat_hash_map<std::string, const KnownAgent*> agents;  // by instance
  // Checked when the capture was started, so that it can be parsed.
  const auto filter = EventFilter::Parse(record.spec.filter.event_types);
  for (const CaptureAgentPart& part : record.agents) {
    if (const KnownAgent* const agent = registry.Find(part.agent_id)) {
      agents[part.instance_id] = agent;
    }
  }
  for (const CaptureWorkerStatus& status : record.workers) {
    if (status.framework) continue;
    WorkerView& worker = workers[status.worker];
    worker.is_stored = status.state == CaptureWorkerState::kRecording &&
                       status.events_read == status.events_stored;
    worker.is_suspended = status.state == CaptureWorkerState::kSuspended;
    worker.records_tensor_calls = filter.ok() && filter->Selects("nrt_tensor_write");
    worker.records_allocations = filter.ok() && filter->Selects("nrt_tensor_allocate");
    const auto found = agents.find(status.worker.instance_id);
    if (found == agents.end()) continue;
    const KnownAgent& agent = *found->second;
    const bool is_connected = agent.connection.has_value();
    const auto& inventory = is_connected ? agent.workers : agent.last_workers;
    const auto known = inventory.find(status.worker);
    if (known != inventory.end()) worker.job = known->second.job;
    if (!is_connected) continue;
    const uint64_t age_ns = realtime_ns - std::min(realtime_ns, agent.last_seen_realtime_ns);
    worker.last_seen_ns = monotonic_ns - std::min(monotonic_ns, age_ns);
    // The capture continues, so that a part of it that is over is that of a process that has ended.
    const bool is_over = status.state == CaptureWorkerState::kLost ||
                         status.state == CaptureWorkerState::kStopping ||
                         status.state == CaptureWorkerState::kComplete;
    worker.has_ended = is_over && known == inventory.end();
    worker.ended_orderly = worker.has_ended && status.state != CaptureWorkerState::kLost;
  }
  return workers;
}

// Adds the report of another job or watch. Figures of a step are those of the job that waits most.
void AddReport(const v1::InsightReport& from, v1::InsightReport& to) {
  to.mutable_verdicts()->MergeFrom(from.verdicts());
  to.mutable_refusals()->MergeFrom(from.refusals());
  to.mutable_warnings()->MergeFrom(from.warnings());
  to.set_cores(to.cores() + from.cores());
  to.set_cores_judged(to.cores_judged() + from.cores_judged());
  to.set_executions(to.executions() + from.executions());
  to.set_below_cost(to.below_cost() && from.below_cost());
  to.set_begin_ns(std::min(to.begin_ns(), from.begin_ns()));
  to.set_end_ns(std::max(to.end_ns(), from.end_ns()));
  if (from.exposed_wait_ns() <= to.exposed_wait_ns()) return;
  to.set_step_ns(from.step_ns());
  to.set_exposed_wait_ns(from.exposed_wait_ns());
  to.set_explained_wait_ns(from.explained_wait_ns());
}

// Sorts hangs first, then by cost, as one report has them.
void SortVerdicts(v1::InsightReport& report) {
  const auto is_hang = [](const v1::Verdict& verdict) {
    return verdict.kind() >= v1::VERDICT_KIND_HANG_NOT_ENTERED;
  };
  std::ranges::stable_sort(*report.mutable_verdicts(),
                           [&](const v1::Verdict& a, const v1::Verdict& b) {
                             if (is_hang(a) != is_hang(b)) return is_hang(a);
                             return a.cost_ns() > b.cost_ns();
                           });
}

// Adds what verdicts cannot tell apart, because calls were not recorded.
void AddOmissions(const WatchedJob& job,
                  const absl::flat_hash_map<WorkerIdentity, WorkerView>& workers,
                  v1::InsightReport& report) {
  const auto add = [&](InsightClass calls, bool WorkerView::*records, std::string_view what,
                       std::string_view kind) {
    // All workers of a watch have the same filter.
    if (!workers.empty() && !(workers.begin()->second.*records)) {
      report.add_warnings(
          fmt::format("this watch does not record {}: {} appears as host-code; record a suspect to "
                      "tell them apart",
                      what, kind));
    } else if (const size_t cores = job.CoresWithout(calls)) {
      report.add_warnings(fmt::format(
          "{} of {} of {} cores were left out to keep the watch's budget: {} appears as host-code "
          "there; raise --budget-core, or record a suspect",
          what, cores, job.cores().size(), kind));
    }
  };
  add(InsightClass::kTransferIo, &WorkerView::records_tensor_calls, "tensor reads and writes",
      "input-stall");
  add(InsightClass::kMemory, &WorkerView::records_allocations, "allocations and frees",
      "memory-stall");
}

std::vector<VerdictCore> VerdictCores(const WatchedJob& job, std::span<const uint32_t> cores,
                                      size_t count_max) {
  std::vector<VerdictCore> list;
  for (const uint32_t core : cores.first(std::min(cores.size(), count_max))) {
    list.push_back({job.WorkerOf(core), job.GidOf(core)});
  }
  return list;
}

}  // namespace

LiveInsight::LiveInsight(const Deps& deps)
    : deps_(deps), metrics_(deps.registry), current_view_(std::make_shared<FleetView>()) {}

LiveInsight::~LiveInsight() { End(); }

void LiveInsight::Begin() {
  thread_ = std::thread([this] { Run(); });
}

void LiveInsight::End() {
  queue_.Close();
  if (thread_.joinable()) thread_.join();
}

void LiveInsight::Run() {
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kWatchNiceness) != 0) {
    SPDLOG_WARN("verdicts are made at normal priority: setpriority failed");
  }
  while (!queue_.is_closed()) {
    const uint64_t now_ns = deps_.clock.MonotonicNs();
    const uint64_t left_ns = judge_due_ns_ - std::min(judge_due_ns_, now_ns);
    RunRound(std::chrono::nanoseconds(std::min(left_ns, kPatienceNs)));
  }
}

void LiveInsight::OnStored(const ReceivedChunk& chunk) {
  if (!has_watches_.load(std::memory_order_relaxed) || !chunk.header.stream.has_core()) return;
  {
    const MutexLock lock(mutex_);
    if (!view_->contains(chunk.header.capture_id)) return;
  }
  queue_.Push({.header = chunk.header,
               .columns = chunk.columns,
               .arrival_ns = deps_.clock.MonotonicNs(),
               .arrival_reference_ns = deps_.clocks.ReferenceNs()});
}

void LiveInsight::Tick(const Coordinator& coordinator) {
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  if (now_ns < view_due_ns_) return;
  FleetView view;
  coordinator.ForEachRunning([&](const CaptureRecord& record) {
    if (!record.spec.watch || record.state != CaptureState::kRecording) return;
    view[record.id] = WorkersOf(record, coordinator.registry(), deps_.clock.RealtimeNs(), now_ns);
  });
  SetView(std::move(view));
  view_due_ns_ = DueAfter(now_ns, deps_.clock.MonotonicNs(), limits::kWatchViewPause);
}

// Most changes of a record are of its numbers, for which the next look is soon enough.
void LiveInsight::OnCaptureChanged(const CaptureRecord& record) {
  if (!record.spec.watch) return;
  const bool records = record.state == CaptureState::kRecording;
  if (records != viewed_.contains(record.id)) view_due_ns_ = 0;
}

void LiveInsight::SetView(FleetView view) {
  viewed_.clear();
  for (const auto& [capture, workers] : view) viewed_.insert(capture);
  has_watches_.store(!view.empty(), std::memory_order_relaxed);
  auto shared = std::make_shared<const FleetView>(std::move(view));
  const MutexLock lock(mutex_);
  view_ = std::move(shared);
  if (since_ns_ == 0) since_ns_ = deps_.clocks.ReferenceNs();
}

void LiveInsight::RunRound(std::chrono::nanoseconds patience) {
  const std::vector<WatchedChunk> chunks = queue_.Take(kChunksPerRound, patience);
  {
    const MutexLock lock(mutex_);
    current_view_ = view_;
  }
  const uint64_t began_ns = deps_.clock.MonotonicNs();
  for (const WatchedChunk& chunk : chunks) Read(chunk);
  const uint64_t now_ns = deps_.clock.MonotonicNs();
  metrics_.read_seconds.Increment(static_cast<double>(now_ns - began_ns) * 1e-9);
  if (now_ns >= judge_due_ns_) JudgeAll(now_ns);
}

LiveInsight::Watched* LiveInsight::JobOf(const WatchedChunk& chunk) {
  const CaptureId& capture = chunk.header.capture_id;
  const WorkerIdentity& worker = chunk.header.stream.worker;
  const auto known = job_of_worker_.find(std::pair(capture, worker));
  if (known != job_of_worker_.end()) return &jobs_.at({capture, known->second});
  const auto view = current_view_->find(capture);
  if (view == current_view_->end()) return nullptr;
  const auto seen = view->second.find(worker);
  // Not reported yet: its later chunks are read.
  if (seen == view->second.end()) return nullptr;
  const JobKey key(capture, seen->second.job);
  const auto job = jobs_.find(key);
  if (job == jobs_.end() && jobs_.size() >= limits::kWatchJobsMax) {
    metrics_.cores_not_judged.Increment();
    return nullptr;
  }
  job_of_worker_.try_emplace(std::pair(capture, worker), key.second);
  if (job != jobs_.end()) return &job->second;
  Watched& watched = jobs_.try_emplace(key, key.second).first->second;
  watched.window_began_ns = deps_.clock.MonotonicNs();
  watched.window_began_reference_ns = chunk.arrival_reference_ns;
  return &watched;
}

void LiveInsight::Read(const WatchedChunk& chunk) {
  Watched* const watched = JobOf(chunk);
  if (watched == nullptr) return;
  WatchedJob& job = *watched->cores;
  const size_t before = job.cores().size();
  if (cores_ >= limits::kWatchCoresMax && !job.Knows(chunk.header.stream)) {
    metrics_.cores_not_judged.Increment();
    return;
  }
  const uint32_t core = job.CoreOf(chunk.header.stream, chunk.header);
  cores_ += job.cores().size() - before;
  const bool has_events = !chunk.is_cut && chunk.header.event_count > 0;
  // Ingest has checked the columns, so that this cannot fail.
  const bool is_read =
      has_events && UncompressColumns(chunk.columns, chunk.header.columns_bytes, columns_).ok() &&
      decoded_.Decode(columns_).ok();
  job.Take(core, chunk, is_read ? &decoded_ : nullptr);
}

std::vector<InsightCore> LiveInsight::CoresOf(const WatchedJob& job) {
  std::vector<InsightCore> cores(job.cores().begin(), job.cores().end());
  for (uint32_t i = 0; i < cores.size(); ++i) cores[i].worker_gid = job.GidOf(i);
  return cores;
}

void LiveInsight::JudgeAll(uint64_t now_ns) {
  ForgetEnded();
  std::map<VerdictKind, uint32_t> counts;
  CoreFeed::Counters sums = forgotten_counters_;
  uint64_t not_followed = not_followed_;
  size_t refused = 0;
  size_t bytes = 0;
  for (auto& [key, watched] : jobs_) {
    refused += JudgeJob(key, watched, now_ns, counts);
    sums += watched.cores->counters();
    not_followed += watched.tracker.not_followed();
    bytes += watched.cores->memory_bytes();
    if (now_ns >= watched.window_began_ns + limits::kWatchWindowNs) {
      StartWindow(key, watched, now_ns);
    }
  }
  metrics_.SetVerdicts(counts);
  metrics_.SetCounters(sums);
  metrics_.cores.Set(static_cast<double>(cores_));
  metrics_.refused_cores.Set(static_cast<double>(refused));
  metrics_.memory_bytes.Set(static_cast<double>(bytes));
  metrics_.queue_chunks.Set(static_cast<double>(queue_.size()));
  RaiseCounter(metrics_.dropped_chunks, static_cast<double>(queue_.dropped()));
  RaiseCounter(metrics_.verdicts_not_followed, static_cast<double>(not_followed));
  const uint64_t judged_ns = deps_.clock.MonotonicNs();
  metrics_.judge_seconds.Increment(static_cast<double>(judged_ns - now_ns) * 1e-9);
  judge_due_ns_ = DueAfter(now_ns, judged_ns, limits::kWatchJudgePause);
}

size_t LiveInsight::JudgeJob(const JobKey& key, Watched& watched, uint64_t now_ns,
                             std::map<VerdictKind, uint32_t>& counts) {
  WatchedJob& job = *watched.cores;
  static const absl::flat_hash_map<WorkerIdentity, WorkerView> kNobody;
  const auto view = current_view_->find(key.first);
  const auto& workers = view == current_view_->end() ? kNobody : view->second;
  InsightReport report = job.Judge(workers, now_ns);
  const std::vector<InsightCore> cores = CoresOf(job);
  std::vector<std::string> texts;
  for (const Verdict& verdict : report.verdicts) texts.push_back(VerdictText(verdict, cores));
  const VerdictTracker::Changes changes = watched.tracker.Update(report, cores, texts, now_ns);
  for (const size_t i : changes.began) metrics_.CountVerdict(report.verdicts[i].kind);
  Announce(key, watched, report, changes, texts);
  std::set<uint32_t> refused;
  for (const Refusal& refusal : report.refusals) {
    refused.insert(refusal.cores.begin(), refusal.cores.end());
  }
  // What a single judgement says does not count yet.
  std::vector<Verdict> current;
  for (const size_t i : watched.tracker.current()) {
    ++counts[report.verdicts[i].kind];
    current.push_back(std::move(report.verdicts[i]));
  }
  report.verdicts = std::move(current);
  for (Verdict& verdict : report.verdicts) {
    if (verdict.suspects.empty()) continue;
    verdict.since_ns = job.ToReference(verdict.suspects.front(), verdict.since_ns);
    verdict.until_ns = job.ToReference(verdict.suspects.front(), verdict.until_ns);
    for (VerdictModel& model : verdict.also) {
      model.since_ns = job.ToReference(verdict.suspects.front(), model.since_ns);
      model.until_ns = job.ToReference(verdict.suspects.front(), model.until_ns);
    }
  }
  for (Refusal& refusal : report.refusals) {
    if (refusal.cores.empty()) continue;
    refusal.begin_ns = job.ToReference(refusal.cores.front(), refusal.begin_ns);
    refusal.end_ns = job.ToReference(refusal.cores.front(), refusal.end_ns);
  }
  std::ranges::move(FindAbsentRanks(cores, {}), std::back_inserter(report.refusals));
  v1::InsightReport message = ToMessage(report, cores, {.id = key.first.ToString()});
  message.set_begin_ns(watched.window_began_reference_ns);
  message.set_end_ns(deps_.clocks.ReferenceNs());
  AddOmissions(job, workers, message);
  const MutexLock lock(mutex_);
  reports_[key] = std::move(message);
  return refused.size();
}

// A job whose workers restart often would otherwise be full of cores that have ended.
void LiveInsight::StartWindow(const JobKey& key, Watched& watched, uint64_t now_ns) {
  watched.window_began_ns = now_ns;
  watched.window_began_reference_ns = deps_.clocks.ReferenceNs();
  if (!watched.cores->IsMostlyEnded()) return watched.cores->StartWindow();
  forgotten_counters_ += watched.cores->counters();
  cores_ -= watched.cores->cores().size();
  watched.cores = std::make_unique<WatchedJob>(key.second);
  absl::erase_if(job_of_worker_, [&key](const auto& entry) {
    return entry.first.first == key.first && entry.second == key.second;
  });
}

void LiveInsight::Announce(const JobKey& key, const Watched& watched, const InsightReport& report,
                           const VerdictTracker::Changes& changes,
                           std::span<const std::string> texts) {
  for (const std::string& text : changes.ended) {
    SPDLOG_INFO("watch {}: over: {}", key.first.ToString(), text);
  }
  for (const size_t i : changes.began) {
    const Verdict& verdict = report.verdicts[i];
    SPDLOG_WARN("watch {}: {}", key.first.ToString(), texts[i]);
    const WatchedJob& job = *watched.cores;
    const std::vector<uint32_t> peers = job.PeersOf(verdict.suspects, limits::kWatchPeersMax);
    const LiveVerdict live{
        .capture = key.first,
        .job = key.second,
        .kind = VerdictKindName(verdict.kind),
        .text = texts[i],
        .suspects = VerdictCores(job, verdict.suspects, limits::kWatchSuspectsMax),
        .peers = VerdictCores(job, peers, limits::kWatchPeersMax)};
    deps_.sequence.PostTask([this, live] {
      for (VerdictObserver* const observer : observers_) observer->OnVerdict(live);
    });
  }
}

void LiveInsight::ForgetEnded() {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (current_view_->contains(job->first.first)) {
      ++job;
      continue;
    }
    forgotten_counters_ += job->second.cores->counters();
    not_followed_ += job->second.tracker.not_followed();
    cores_ -= job->second.cores->cores().size();
    {
      const MutexLock lock(mutex_);
      reports_.erase(job->first);
    }
    job = jobs_.erase(job);
  }
  absl::erase_if(job_of_worker_, [this](const auto& entry) {
    const auto view = current_view_->find(entry.first.first);
    return view == current_view_->end();
  });
}

absl::StatusOr<v1::InsightReport> LiveInsight::Now(const std::string& job) {
  const MutexLock lock(mutex_);
  if (view_->empty()) {
    return FailedPrecondition("no watch is on; turn one on with neurontrace watch on");
  }
  v1::InsightReport sum;
  bool is_first = true;
  for (const auto& [key, report] : reports_) {
    if (!job.empty() && key.second != job) continue;
    if (is_first) {
      sum = report;
    } else {
      AddReport(report, sum);
    }
    is_first = false;
  }
  if (is_first && !job.empty()) return NotFound("the watch has no worker of job {}", job);
  if (is_first) {
    sum.set_rule_version(std::string(kInsightRuleVersion));
    sum.set_text("Nothing was judged: the watch has received no events yet");
  } else {
    sum.add_warnings(
        "times are those at which events arrived here; export the watch for aligned times");
  }
  sum.set_live_since_ns(since_ns_);
  SortVerdicts(sum);
  return sum;
}

}  // namespace neurontrace
