// SPDX-License-Identifier: Apache-2.0
// The phases of captures: asked for, judged, begun, stopped, ended.
#include <algorithm>
#include <utility>

#include "aggregator/session/capture_request.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/session/inventory_words.h"
#include "base/status.h"
#include "trace/capture_limits.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Counters of workers are written now and then, states soon.
constexpr uint64_t kSaveIntervalNs = 1'000'000'000;

uint64_t LastExecution(const CaptureSpec& spec, uint64_t first) {
  if (first == 0 || spec.executions == 0) return 0;
  return spec.executions - 1 > UINT64_MAX - first ? UINT64_MAX : first + spec.executions - 1;
}

}  // namespace

absl::Status Coordinator::Commit(Session& session, CaptureSession next) {
  const uint64_t before_ns = clock_.MonotonicNs();
  const absl::Status status = outputs_.persist(next.record(), /*durable=*/true);
  const uint64_t now_ns = clock_.MonotonicNs();
  if (!status.ok()) {
    session.unsaved = true;
    session.again_ns = now_ns + kSaveIntervalNs;
    return status;
  }
  write_ns_ = now_ns - before_ns;
  session.state = std::move(next);
  session.unsaved = session.has_news = session.must_be_durable = false;
  session.saved_ns = now_ns;
  outputs_.changed(session.state.record());
  return absl::OkStatus();
}

void Coordinator::NoteFleet(CaptureSession& session, const SessionTime& now) {
  for (const auto& [agent_id, agent] : registry_.agents()) {
    for (const auto& [identity, worker] : agent.workers) session.NoteWorker(agent_id, worker);
    const bool was_here_lately =
        agent.last_seen_realtime_ns + limits::kAgentMissedForNs >= now.realtime_ns;
    if (!agent.connection && was_here_lately && session.Selects(agent.info)) {
      session.NoteAwayAgent(agent, now);
    }
  }
}

// Right after a restart whoever is back first would be all there is.
void Coordinator::AwaitReturning(CaptureSession& session, const SessionTime& now) {
  const uint64_t back_by_ns = restored_monotonic_ns_ + limits::kAgentReturnMaxNs;
  if (session.record().spec.require_percent == 0 || now.monotonic_ns >= back_by_ns) return;
  for (const auto& [agent_id, agent] : registry_.agents()) {
    if (agent.restored && session.Selects(agent.info)) session.Await(agent_id, back_by_ns);
  }
}

absl::StatusOr<CaptureRecord> Coordinator::StartCapture(const CaptureSpec& asked,
                                                        const MayName& may_name) {
  if (running_.size() >= limits::kCapturesRunningMax) {
    return ResourceExhausted("{} captures are running, which is the limit: stop one first",
                             running_.size());
  }
  CaptureSurroundings surroundings{.registry = registry_, .running = {}, .may_name = may_name};
  for (const auto& [id, session] : running_) {
    surroundings.running.push_back(&session->state.record());
  }
  ASSIGN_OR_RETURN(const CaptureSpec spec, CompleteSpec(asked, surroundings));
  CaptureAllowance allowance;
  if (inputs_.admit) {
    ASSIGN_OR_RETURN(allowance, inputs_.admit(spec, SelectedJobs(spec, registry_), std::nullopt));
  }
  if (outputs_.clocks_needed) outputs_.clocks_needed();

  const SessionTime now = Now();
  const CaptureId id = CaptureId::Make(clock_, random_);
  auto session = std::make_unique<Session>(CaptureSession(id, spec, now));
  session->allowance = std::move(allowance);
  session->allowance_due_ns = now.monotonic_ns + CaptureAllowance::kAgeMaxNs;
  for (const auto& [agent_id, agent] : registry_.agents()) {
    if (agent.connection) session->state.Join(agent.info, now);
  }
  AwaitReturning(session->state, now);
  NoteFleet(session->state, now);
  CaptureSession armed = session->state;
  RETURN_IF_ERROR(Commit(*session, std::move(armed)));
  Session& started = *(running_[id] = std::move(session));
  SendToAll(started.state.record(), StartOrder{.capture_id = id, .spec = spec, .arm = true});
  if (started.state.IsJudgementDue(Now())) {  // there is nobody to be asked
    JudgeArming(started).IgnoreError();       // it is tried again
  }
  const CaptureRecord record = started.state.record();
  Tick();
  return record;
}

void Coordinator::RememberCut(const CaptureRecord& record) {
  if (record.spec.mode != CaptureMode::kSnapshot || !record.begin) return;
  Cut& cut = cuts_[record.spec.flight_recorder];
  if (cut.reference_ns < record.begin->reference_ns) {
    cut = {record.spec, record.begin->reference_ns};
  }
}

void Coordinator::WarnOfEarlierCut(const CaptureBegin& begin, CaptureSession& snapshot) const {
  const CaptureSpec& spec = snapshot.record().spec;
  const auto earlier = cuts_.find(spec.flight_recorder);
  if (spec.mode != CaptureMode::kSnapshot || earlier == cuts_.end()) return;
  const Cut& cut = earlier->second;
  if (cut.reference_ns >= begin.reference_ns || !MayOverlap(spec, cut.spec)) return;
  if (begin.reference_ns - cut.reference_ns >= spec.last_ns) return;
  snapshot.Warn(fmt::format(
      "a snapshot {:.1f} s before this one emptied the rings: earlier events are not in this one",
      static_cast<double>(begin.reference_ns - cut.reference_ns) * 1e-9));
}

absl::Status Coordinator::JudgeArming(Session& session) {
  const SessionTime now = Now();
  CaptureSession judged = session.state;
  const ArmingTally tally = judged.Judge();
  const CaptureRecord& record = judged.record();
  const CaptureSpec& spec = record.spec;
  const bool is_anyone = tally.selected > 0 || IsStanding(spec.mode) ||
                         (!spec.include_neuron && !record.agents.empty());
  const uint64_t arm_ns = now.realtime_ns - std::min(now.realtime_ns, record.started_realtime_ns);
  const uint64_t lead_ns = BeginLeadNs(judged.SlowestAnswerNs(), write_ns_);
  const bool begins = is_anyone && tally.IsEnoughFor(spec);
  if (begins) {
    CaptureBegin begin{.reference_ns = now.reference_ns + lead_ns};
    begin.first_execution = spec.at_execution;
    begin.last_execution = LastExecution(spec, spec.at_execution);
    begin.bound_ns = WidestBound(record, begin);
    // Snapshots of recorders that ended before this process began are restored, too.
    std::erase_if(cuts_, [this](const auto& cut) { return !running_.contains(cut.first); });
    WarnOfEarlierCut(begin, judged);
    judged.Begin(begin, now);
    RETURN_IF_ERROR(Commit(session, std::move(judged)));
    RememberCut(session.state.record());
    const uint64_t passed_ns = clock_.MonotonicNs() - now.monotonic_ns;
    SendBegin(session.state.record(), lead_ns - std::min(lead_ns, passed_ns));
  } else {
    // First, as `spec` is in what is handed over.
    const std::string why =
        is_anyone ? tally.WhyNotEnough(spec)
                  : fmt::format("no worker matched; {}", DescribeInventory(registry_, spec));
    RETURN_IF_ERROR(NotBegin(session, std::move(judged), why));
  }
  if (outputs_.judged) outputs_.judged({begins, arm_ns, begins ? lead_ns : 0});
  for (const auto& [obstacle, workers] : tally.obstacles) {
    if (outputs_.refused) outputs_.refused(obstacle, workers);
  }
  return absl::OkStatus();
}

absl::Status Coordinator::NotBegin(Session& session, CaptureSession next, std::string why) {
  next.NotBegin(Now(), std::move(why));
  RETURN_IF_ERROR(Commit(session, std::move(next)));
  SendToAll(session.state.record(), StopOrder{session.state.record().id});
  return absl::OkStatus();
}

absl::Status Coordinator::ChooseExecutions(Session& session, uint64_t first) {
  CaptureSession chosen = session.state;
  chosen.SetExecutions(first, LastExecution(chosen.record().spec, first));
  RETURN_IF_ERROR(Commit(session, std::move(chosen)));
  for (const CaptureAgentPart& part : session.state.record().agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    const CaptureBegin begin = BeginFor(agent->info, *session.state.record().begin);
    outputs_.send(part.agent_id, *agent->connection, BeginOrder{session.state.record().id, begin});
  }
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> Coordinator::StopCapture(const CaptureId& capture) {
  const auto it = running_.find(capture);
  if (it == running_.end()) return NotFound("capture {} is not running", capture.ToString());
  Session& session = *it->second;
  if (session.state.state() == CaptureState::kArming) {
    CaptureSession judged = session.state;
    judged.Judge();
    RETURN_IF_ERROR(NotBegin(session, std::move(judged), "it was stopped before it began"));
    if (outputs_.judged) outputs_.judged({});
  } else {
    RETURN_IF_ERROR(Stop(session, /*by_time=*/false));
  }
  const CaptureRecord record = session.state.record();
  Tick();  // there may be nothing to wait for
  return record;
}

absl::Status Coordinator::Stop(Session& session, bool by_time) {
  if (session.state.state() != CaptureState::kRecording) return absl::OkStatus();
  const SessionTime now = Now();
  CaptureSession stopping = session.state;
  const uint64_t in_ns = by_time ? stopping.StopInNs(now) : 0;
  stopping.Stop(now, in_ns);
  RETURN_IF_ERROR(Commit(session, std::move(stopping)));
  // A snapshot is over at its agents when the past has been collected.
  if (by_time && session.state.record().spec.mode == CaptureMode::kSnapshot) {
    return absl::OkStatus();
  }
  const uint64_t passed_ns = clock_.MonotonicNs() - now.monotonic_ns;
  SendStop(session.state.record(), in_ns - std::min(in_ns, passed_ns));
  return absl::OkStatus();
}

std::string Coordinator::WhyOverQuota(Session& session, const SessionTime& now) {
  const CaptureRecord& record = session.state.record();
  const CaptureMode mode = record.spec.mode;
  if (mode == CaptureMode::kFlightRecorder || mode == CaptureMode::kPreview) return "";
  if (!inputs_.stored_bytes ||
      now.monotonic_ns < session.quota_checked_ns + limits::kQuotaCheckNs) {
    return "";
  }
  session.quota_checked_ns = now.monotonic_ns;
  const uint64_t stored = inputs_.stored_bytes(record.id);
  // Others store as well, and after a restart the agents that say whose workers there are return
  // one by one.
  if (!session.allowance || now.monotonic_ns >= session.allowance_due_ns) {
    auto allowance = absl::StatusOr<CaptureAllowance>(CaptureAllowance());
    if (inputs_.admit) {
      allowance = inputs_.admit(record.spec, SelectedJobs(record.spec, registry_), stored);
    }
    session.allowance_due_ns = now.monotonic_ns + CaptureAllowance::kAgeMaxNs;
    // A store that cannot be read now is no reason to stop.
    if (allowance.ok()) session.allowance = *std::move(allowance);
    if (!session.allowance) return "";
  }
  if (stored >= session.allowance->bytes) {
    return fmt::format("it has reached {}", session.allowance->words);
  }
  if (inputs_.has_room && !inputs_.has_room()) {
    return "the store has reached its quota (--quota-store-bytes)";
  }
  return "";
}

void Coordinator::TickRunning(Session& session, const SessionTime& now) {
  const auto say = [&](const absl::Status& status, std::string_view what) {
    if (status.ok()) return;
    session.state.Warn(fmt::format("{}, but that could not be written down: {}", what,
                                   std::string(status.message())));
  };
  if (now.monotonic_ns < session.again_ns) return;
  if (session.state.IsJudgementDue(now)) {
    say(JudgeArming(session), "who can take part was known");
  }
  if (session.state.state() != CaptureState::kRecording) return;
  const CaptureRecord& record = session.state.record();
  if (record.spec.at_next_execution && record.begin && record.begin->first_execution == 0) {
    const auto first = session.executions.Choose(record, now.monotonic_ns);
    if (first) say(ChooseExecutions(session, *first), "its first execution was chosen");
  }
  if (session.state.IsStopDue(now)) {
    say(Stop(session, /*by_time=*/true), "its time was over");
  } else if (const auto over = session.executions_end.Look(record, now)) {
    if (!over->empty()) session.state.Warn(fmt::format("it was stopped: {}", *over));
    say(Stop(session, /*by_time=*/false), "its executions were over");
  } else if (const std::string why = WhyOverQuota(session, now); !why.empty()) {
    session.state.Warn(fmt::format("it was stopped: {}", why));
    const absl::Status stopped = Stop(session, /*by_time=*/false);
    if (stopped.ok() && outputs_.stopped_by_quota) outputs_.stopped_by_quota(record, why);
    say(stopped, "it was to stop");
  }
}

void Coordinator::Tick() {
  const SessionTime now = Now();
  SendDelayed(now.monotonic_ns);
  for (auto it = running_.begin(); it != running_.end();) {
    Session& session = *it->second;
    TickRunning(session, now);
    const uint64_t save_ns = session.has_news ? limits::kRecordSaveNs : kSaveIntervalNs;
    if (session.state.IsEndDue(now)) {
      session.state.End(now, DescribeInventory(registry_, session.state.record().spec));
      Save(session, /*durable=*/true);
    } else if (session.unsaved && now.monotonic_ns >= session.saved_ns + save_ns) {
      Save(session, session.state.ended());
    }
    // One that has ended stays until its end is on disk.
    if (!session.state.ended() || session.unsaved) {
      ++it;
      continue;
    }
    cuts_.erase(it->first);
    std::unique_ptr<Session> ended = std::move(it->second);
    it = running_.erase(it);
    if (ended->state.IsOpen()) KeepOpen(std::move(ended));
  }
  TickLate(now);
}

}  // namespace neurontrace
