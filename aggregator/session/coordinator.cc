// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "aggregator/session/capture_arming.h"
#include "aggregator/session/inventory_description.h"
#include "lib/base/status.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Returns the last execution of a capture whose first is `first`; 0 if it has none.
uint64_t LastExecution(const CaptureSpec& spec, uint64_t first) {
  const uint64_t executions = spec.conditions.executions;
  if (first == 0 || executions == 0) return 0;
  return executions - 1 > UINT64_MAX - first ? UINT64_MAX : first + executions - 1;
}

// Adds a warning if a decision could not be stored.
void WarnIfFailed(const absl::Status& status, std::string_view what, CaptureSession& session) {
  if (status.ok()) return;
  session.Warn(
      fmt::format("{}, but that could not be stored: {}", what, std::string(status.message())));
}

}  // namespace

Coordinator::Coordinator(const Deps& deps)
    : deps_(deps),
      restored_monotonic_ns_(deps.clock.MonotonicNs()),
      journal_(deps.clock, deps.storage),
      orders_({.clock = deps.clock,
               .registry = registry_,
               .sender = deps.orders,
               .clocks = deps.clocks,
               .captures = *this,
               .sequence = deps.sequence}) {}

// Three clocks: wall time for records, monotonic time for waiting, and reference time for moments
// that hosts share.
SessionTime Coordinator::Now() const {
  return {deps_.clock.RealtimeNs(), deps_.clock.MonotonicNs(), deps_.clocks.ReferenceNs()};
}

void Coordinator::RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                               uint64_t last_seen_realtime_ns) {
  registry_.Restore(std::move(info), first_seen_realtime_ns, last_seen_realtime_ns);
}

// Captures that have ended and await nobody are not kept in memory; the store has them.
void Coordinator::RestoreCapture(CaptureRecord record) {
  const CaptureId id = record.id;
  cuts_.Remember(record);
  auto capture = std::make_unique<TrackedCapture>(CaptureSession(std::move(record), Now()));
  if (!capture->session.ended()) {
    running_[id] = std::move(capture);
  } else if (capture->session.IsOpen()) {
    late_.Keep(std::move(capture));
  }
}

absl::StatusOr<std::vector<ResumedCapture>> Coordinator::Connect(const AgentInfo& agent,
                                                                 ConnectionId from) {
  RETURN_IF_ERROR(registry_.Connect(agent, from, deps_.clock.RealtimeNs()));
  deps_.storage.RememberAgent(*registry_.Find(agent.agent_id));
  absl::StatusOr<std::vector<ResumedCapture>> resumed = JoinAll(agent);
  // The agent is refused and will reconnect, so it must not count as connected.
  if (!resumed.ok()) Disconnect(agent.agent_id, from);
  return resumed;
}

// Connects one agent with all captures. If one record cannot be written, the agent gets no orders
// at all and has to reconnect.
absl::StatusOr<std::vector<ResumedCapture>> Coordinator::JoinAll(const AgentInfo& agent) {
  const SessionTime now = Now();
  std::vector<ResumedCapture> resumed;
  for (const auto& [id, capture] : running_) {
    const size_t parts = capture->session.record().agents.size();
    if (!capture->session.Join(agent, now)) continue;
    // A part has to be stored before the agent records, or a restart would not ask for its data.
    if (capture->session.record().agents.size() != parts) capture->must_be_durable = true;
    if (capture->must_be_durable) journal_.Save(*capture, /*durable=*/true);
    if (capture->must_be_durable) {
      return Unavailable("agent {} must wait: the record of capture {} cannot be written",
                         agent.agent_id, id.ToString());
    }
    resumed.push_back(orders_.ResumeFor(capture->session, agent));
  }
  for (const auto& [id, capture] : late_.captures()) {
    if (!capture->session.Join(agent, now)) continue;
    capture->unsaved = true;
    resumed.push_back(orders_.ResumeFor(capture->session, agent));
  }
  return resumed;
}

// Captures continue: the agent keeps recording into its spool and delivers when it returns.
void Coordinator::Disconnect(const std::string& agent_id, ConnectionId from) {
  const SessionTime now = Now();
  if (!registry_.Disconnect(agent_id, from, now.realtime_ns)) return;
  deps_.storage.RememberAgent(*registry_.Find(agent_id));
  for (const TrackedCaptures* const captures : {&std::as_const(running_), &late_.captures()}) {
    for (const auto& [id, capture] : *captures) {
      if (capture->session.Leave(agent_id, now)) capture->unsaved = true;
    }
  }
}

absl::Status Coordinator::CheckCurrent(const std::string& agent_id, ConnectionId from) const {
  if (registry_.IsCurrent(agent_id, from)) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAborted, "agent {} has reconnected; this call ends",
                    agent_id);
}

absl::Status Coordinator::OnHeartbeat(const std::string& agent_id, ConnectionId from) {
  RETURN_IF_ERROR(CheckCurrent(agent_id, from));
  registry_.Touch(agent_id, deps_.clock.RealtimeNs());
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorker(const std::string& agent_id, ConnectionId from,
                                   const WorkerInfo& worker) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  RETURN_IF_ERROR(registry_.PutWorker(agent_id, worker));
  deps_.storage.RememberWorker(agent_id, worker);
  for (const auto& [id, capture] : running_) {
    if (capture->session.RecordWorker(agent_id, worker)) capture->unsaved = true;
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerGone(const std::string& agent_id, ConnectionId from,
                                       const WorkerIdentity& worker) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  registry_.RemoveWorker(agent_id, worker);
  for (const auto& [id, capture] : running_) {
    if (capture->session.RecordWorkerGone(worker)) capture->unsaved = true;
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerStatus(const std::string& agent_id, ConnectionId from,
                                         const CaptureWorkerStatus& status) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  TrackedCapture* const capture = FindTracked(status.capture_id);
  if (capture == nullptr) return absl::OkStatus();  // the capture is over
  // For a refused worker, the inventory's state explains the refusal; for others it is no obstacle.
  CaptureWorkerStatus known = status;
  const auto& workers = registry_.Find(agent_id)->workers;
  const auto worker = workers.find(status.worker);
  const bool is_refused = status.state == CaptureWorkerState::kRefused && worker != workers.end();
  known.worker_state = is_refused ? worker->second.state : WorkerState::kUnspecified;
  capture->unsaved = true;
  const bool is_news = capture->session.OnWorkerStatus(agent_id, known, Now());
  // CheckArming counts all that were refused before the beginning.
  if (is_news && capture->session.state() == CaptureState::kRecording &&
      known.state == CaptureWorkerState::kRefused) {
    journal_.ReportRefused(known.obstacle, 1);
  }
  // Acts at once instead of on the next tick, so that the capture begins as early as it can.
  if (capture->session.IsEndCheckDue(Now())) {
    Tick();  // that was the last answer
  } else if (is_news) {
    journal_.SaveSoon(*capture);
  } else {
    journal_.ReportChanged(capture->session.record());
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnAgentStatus(const std::string& agent_id, ConnectionId from,
                                        const CaptureId& id, uint32_t matched_workers,
                                        bool finished) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  TrackedCapture* const capture = FindTracked(id);
  if (capture == nullptr) return absl::OkStatus();
  if (capture->session.OnAgentStatus(agent_id, matched_workers, finished, Now())) {
    if (capture->session.ended()) {
      End(*capture, Now());
    } else {
      journal_.SaveSoon(*capture);
    }
  }
  Tick();  // this may have been the last agent
  return absl::OkStatus();
}

// If the write fails, the capture stays in running_ with its end unsaved, and Tick writes it again.
void Coordinator::End(TrackedCapture& capture, const SessionTime& now) {
  capture.session.End(now, DescribeInventory(registry_, capture.session.record().spec));
  journal_.Save(capture, /*durable=*/true);
}

TrackedCapture* Coordinator::FindTracked(const CaptureId& capture) const {
  const auto it = running_.find(capture);
  return it == running_.end() ? late_.Find(capture) : it->second.get();
}

const CaptureRecord* Coordinator::Find(const CaptureId& capture) const {
  const TrackedCapture* const tracked = FindTracked(capture);
  return tracked == nullptr ? nullptr : &tracked->session.record();
}

void Coordinator::Warn(const CaptureId& capture, std::string warning) {
  const auto it = running_.find(capture);
  if (it == running_.end()) return;
  it->second->session.Warn(std::move(warning));
  journal_.Save(*it->second, /*durable=*/false);
}

void Coordinator::WarnAll(const std::string& warning) {
  for (const auto& [id, capture] : running_) {
    capture->session.Warn(warning);
    journal_.Save(*capture, /*durable=*/false);
  }
}

const CaptureRecord* Coordinator::FindRunning(const CaptureId& capture) const {
  const auto it = running_.find(capture);
  return it == running_.end() ? nullptr : &it->second->session.record();
}

void Coordinator::ForEachRunning(const std::function<void(const CaptureRecord&)>& visit) const {
  for (const auto& [id, capture] : running_) visit(capture->session.record());
}

std::vector<CaptureRecord> Coordinator::Running() const {
  std::vector<CaptureRecord> records;
  ForEachRunning([&](const CaptureRecord& record) { records.push_back(record); });
  return records;
}

// Without this, a worker whose agent never answers would be missing from the record instead of
// being listed with an obstacle.
void Coordinator::AddKnownWorkers(CaptureSession& session, const SessionTime& now) const {
  for (const auto& [agent_id, agent] : registry_.agents()) {
    for (const auto& [identity, worker] : agent.workers) session.RecordWorker(agent_id, worker);
    const bool was_here_lately =
        agent.last_seen_realtime_ns + limits::kAgentMissedForNs >= now.realtime_ns;
    if (!agent.connection && was_here_lately && session.Selects(agent.info)) {
      session.RecordAwayAgent(agent, now);
    }
  }
}

// A capture that requires a share of its workers would otherwise fail right after a restart of the
// aggregator, when few agents have reconnected.
void Coordinator::AwaitReturning(CaptureSession& session, const SessionTime& now) const {
  const uint64_t back_by_ns = restored_monotonic_ns_ + limits::kAgentReturnMaxNs;
  if (session.record().spec.conditions.require_percent == 0 || now.monotonic_ns >= back_by_ns)
    return;
  for (const auto& [agent_id, agent] : registry_.agents()) {
    if (agent.restored && session.Selects(agent.info)) session.Await(agent_id, back_by_ns);
  }
}

absl::StatusOr<CaptureRecord> Coordinator::StartCapture(const CaptureSpec& asked,
                                                        const CanName& can_name) {
  if (running_.size() >= limits::kCapturesRunningMax) {
    return ResourceExhausted("{} captures are running, which is the limit; stop one first",
                             running_.size());
  }
  // The checks come first, as each of them may refuse the capture.
  CaptureContext capture_context{.registry = registry_, .running = {}, .can_name = can_name};
  for (const auto& [id, capture] : running_) {
    capture_context.running.push_back(&capture->session.record());
  }
  ASSIGN_OR_RETURN(const CaptureSpec spec, CompleteSpec(asked, capture_context));
  ASSIGN_OR_RETURN(CaptureAllowance allowance,
                   deps_.quota.Admit(spec, SelectedJobs(spec, registry_), std::nullopt));
  deps_.clocks.RefreshSoon();

  // From here on the capture exists, although it is dropped again if its record cannot be written.
  const SessionTime now = Now();
  const CaptureId id = CaptureId::Make(deps_.clock, deps_.random);
  auto capture = std::make_unique<TrackedCapture>(CaptureSession(id, spec, now));
  capture->quota_stop = QuotaStopPolicy(std::move(allowance), now);
  for (const auto& [agent_id, agent] : registry_.agents()) {
    if (agent.connection) capture->session.Join(agent.info, now);
  }
  AwaitReturning(capture->session, now);
  AddKnownWorkers(capture->session, now);
  CaptureSession armed = capture->session;
  // Stored before any agent is asked: after a crash the capture is armed again rather than
  // forgotten.
  RETURN_IF_ERROR(journal_.Commit(*capture, std::move(armed)));
  TrackedCapture& started = *(running_[id] = std::move(capture));
  orders_.SendToAll(started.session.record(),
                    StartOrder{.capture_id = id, .spec = spec, .arm = true});
  if (started.session.IsEndCheckDue(Now())) {  // there is no agent to wait for
    CheckArming(started).IgnoreError();        // Tick tries again
  }
  CaptureRecord record = started.session.record();
  // Ends the capture at once if it has nothing to wait for. The record was copied before, so the
  // caller sees the state in which it started.
  Tick();
  return record;
}

// Decides on a copy. `capture` changes only when the decision is stored, so a failed write leads to
// the same question on a later tick.
absl::Status Coordinator::CheckArming(TrackedCapture& capture) {
  const SessionTime now = Now();
  CaptureSession judged = capture.session;
  const ArmingTally tally = judged.Judge();
  const CaptureRecord& record = judged.record();
  const CaptureSpec& spec = record.spec;
  const bool is_anyone = tally.selected > 0 || IsStanding(spec.mode) ||
                         (!spec.filter.include_neuron && !record.agents.empty());
  const uint64_t arm_ns = now.realtime_ns - std::min(now.realtime_ns, record.started_realtime_ns);
  const uint64_t lead_ns =
      std::max(BeginLeadNs(judged.SlowestAnswerNs(), journal_.write_ns()), FrameworkLeadNs(spec));
  const bool begins = is_anyone && tally.IsEnoughFor(spec);
  if (begins) {
    RETURN_IF_ERROR(Begin(capture, std::move(judged), lead_ns, now));
  } else {
    // Made before `judged`, which holds `spec`, is moved.
    std::string why =
        is_anyone ? tally.NotEnoughReason(spec)
                  : fmt::format("no worker matched; {}", DescribeInventory(registry_, spec));
    RETURN_IF_ERROR(NotBegin(capture, std::move(judged), std::move(why)));
  }
  journal_.ReportArmed({begins, arm_ns, begins ? lead_ns : 0});
  for (const auto& [obstacle, workers] : tally.obstacles) {
    journal_.ReportRefused(obstacle, workers);
  }
  return absl::OkStatus();
}

absl::Status Coordinator::Begin(TrackedCapture& capture, CaptureSession judged, uint64_t lead_ns,
                                const SessionTime& now) {
  // The beginning is a moment of the reference timescale, at which every agent begins by its own
  // clock.
  const CaptureSpec& spec = judged.record().spec;
  CaptureBegin begin{.reference_ns = now.reference_ns + lead_ns};
  begin.first_execution = spec.conditions.at_execution;
  begin.last_execution = LastExecution(spec, spec.conditions.at_execution);
  begin.bound_ns = orders_.WidestBound(judged.record(), begin);
  // RestoreCapture also remembers snapshots of recorders that ended before this process started.
  cuts_.KeepOnly([this](const CaptureId& id) { return running_.contains(id); });
  cuts_.WarnOfEarlier(begin, judged);
  judged.Begin(begin, now);
  RETURN_IF_ERROR(journal_.Commit(capture, std::move(judged)));
  cuts_.Remember(capture.session.record());
  // Storing the decision has used part of the lead, which was computed to include that.
  const uint64_t passed_ns = deps_.clock.MonotonicNs() - now.monotonic_ns;
  orders_.SendBegin(capture.session.record(), lead_ns - std::min(lead_ns, passed_ns));
  return absl::OkStatus();
}

// Agents are told to stop, because some of them may have armed workers.
absl::Status Coordinator::NotBegin(TrackedCapture& capture, CaptureSession judged,
                                   std::string why) {
  judged.NotBegin(Now(), std::move(why));
  RETURN_IF_ERROR(journal_.Commit(capture, std::move(judged)));
  const CaptureRecord& record = capture.session.record();
  orders_.SendToAll(record, StopOrder{record.id});
  return absl::OkStatus();
}

absl::Status Coordinator::ChooseExecutions(TrackedCapture& capture, uint64_t first) {
  CaptureSession chosen = capture.session;
  chosen.SetExecutions(first, LastExecution(chosen.record().spec, first));
  RETURN_IF_ERROR(journal_.Commit(capture, std::move(chosen)));
  orders_.SendExecutions(capture.session.record());
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> Coordinator::StopCapture(const CaptureId& id) {
  const auto it = running_.find(id);
  if (it == running_.end()) return NotFound("capture {} is not running", id.ToString());
  TrackedCapture& capture = *it->second;
  if (capture.session.state() == CaptureState::kArming) {
    CaptureSession judged = capture.session;
    judged.Judge();
    RETURN_IF_ERROR(NotBegin(capture, std::move(judged), "it was stopped before it began"));
    journal_.ReportArmed({});
  } else {
    RETURN_IF_ERROR(Stop(capture, /*by_time=*/false));
  }
  CaptureRecord record = capture.session.record();
  Tick();  // ends it at once if there is no agent to wait for
  return record;
}

absl::StatusOr<CaptureRecord> Coordinator::UpdateCapture(const CaptureId& id,
                                                         const CaptureUpdate& update) {
  TrackedCapture* const capture = FindTracked(id);
  if (capture == nullptr) return NotFound("capture {} is not tracked", id.ToString());
  CaptureSession updated = capture->session;
  ASSIGN_OR_RETURN(const bool has_changed, updated.Update(update));
  if (has_changed) RETURN_IF_ERROR(journal_.CommitUpdate(*capture, std::move(updated)));
  return capture->session.record();
}

// Stopping by time is announced ahead, so that all hosts stop at the same moment. A stop by command
// applies at once.
absl::Status Coordinator::Stop(TrackedCapture& capture, bool by_time) {
  if (capture.session.state() != CaptureState::kRecording) return absl::OkStatus();
  const SessionTime now = Now();
  CaptureSession stopping = capture.session;
  const uint64_t in_ns = by_time ? stopping.StopInNs(now) : 0;
  stopping.Stop(now, in_ns);
  RETURN_IF_ERROR(journal_.Commit(capture, std::move(stopping)));
  const CaptureRecord& record = capture.session.record();
  // Agents end a snapshot by themselves once they have collected the past.
  if (by_time && record.spec.mode == CaptureMode::kSnapshot) return absl::OkStatus();
  const uint64_t passed_ns = deps_.clock.MonotonicNs() - now.monotonic_ns;
  orders_.SendStop(record, in_ns - std::min(in_ns, passed_ns));
  return absl::OkStatus();
}

// At most one reason applies per tick. A failed write leaves the capture recording, and the reason
// is found again once retry_ns has passed.
void Coordinator::StopIfDue(TrackedCapture& capture, const SessionTime& now) {
  CaptureSession& session = capture.session;
  const CaptureRecord& record = session.record();
  if (session.IsStopDue(now)) {
    WarnIfFailed(Stop(capture, /*by_time=*/true), "its duration elapsed", session);
  } else if (const auto over = capture.execution_stop.Check(record, now)) {
    if (!over->empty()) session.Warn(fmt::format("it was stopped: {}", *over));
    WarnIfFailed(Stop(capture, /*by_time=*/false), "its executions were over", session);
  } else if (const std::string why = capture.quota_stop.Check(record, registry_, deps_.quota, now);
             !why.empty()) {
    session.Warn(fmt::format("it was stopped: {}", why));
    const absl::Status stopped = Stop(capture, /*by_time=*/false);
    if (stopped.ok()) journal_.ReportStoppedByQuota(record, why);
    WarnIfFailed(stopped, "a stop condition was met", session);
  }
}

void Coordinator::TickRunning(TrackedCapture& capture, const SessionTime& now) {
  // A decision that could not be stored is not repeated on every tick.
  if (now.monotonic_ns < capture.retry_ns) return;
  CaptureSession& session = capture.session;
  if (session.IsEndCheckDue(now)) {
    WarnIfFailed(CheckArming(capture), "its participants were determined", session);
  }
  if (session.state() != CaptureState::kRecording) return;
  const CaptureRecord& record = session.record();
  const bool needs_execution = record.spec.conditions.at_next_execution && record.begin &&
                               record.begin->first_execution == 0;
  if (needs_execution) {
    const auto first = capture.execution_start.Choose(record, now.monotonic_ns);
    if (first) {
      WarnIfFailed(ChooseExecutions(capture, *first), "its first execution was chosen", session);
    }
  }
  StopIfDue(capture, now);
}

// The order matters: orders whose moment has come are sent first, then decisions are made, and an
// ended capture is removed only after its end is stored.
void Coordinator::Tick() {
  const SessionTime now = Now();
  orders_.SendDue();
  for (auto it = running_.begin(); it != running_.end();) {
    TrackedCapture& capture = *it->second;
    TickRunning(capture, now);
    if (capture.session.IsEndDue(now)) {
      End(capture, now);
    } else {
      journal_.SaveIfDue(capture, now.monotonic_ns);
    }
    // An ended capture stays until its end is on the disk.
    if (!capture.session.ended() || capture.unsaved) {
      ++it;
      continue;
    }
    cuts_.Forget(it->first);
    std::unique_ptr<TrackedCapture> ended = std::move(it->second);
    it = running_.erase(it);
    if (ended->session.IsOpen()) late_.Keep(std::move(ended));
  }
  late_.Tick(now, journal_);
}

}  // namespace neurontrace
