// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/coordinator.h"

#include <algorithm>
#include <utility>

#include "aggregator/session/capture_arming.h"
#include "aggregator/session/inventory_words.h"
#include "lib/base/status.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Two reports of an agent apart, and what an order needs to every agent.
constexpr uint64_t kObservedNs = 200'000'000;
constexpr uint64_t kAheadNs = 200'000'000;
constexpr uint64_t kAheadMin = 2;
// A number that runs away says nothing; beyond, the workload has no such numbers.
constexpr uint64_t kAheadMax = 1'000'000;

bool IsRecording(const CaptureWorkerStatus& status) {
  return !status.framework && status.state == CaptureWorkerState::kRecording;
}

// Counters of workers, and what agents bring late, are written now and then, states soon.
constexpr uint64_t kSaveIntervalNs = 1'000'000'000;

uint64_t LastExecution(const CaptureSpec& spec, uint64_t first) {
  if (first == 0 || spec.conditions.executions == 0) return 0;
  return spec.conditions.executions - 1 > UINT64_MAX - first
             ? UINT64_MAX
             : first + spec.conditions.executions - 1;
}

}  // namespace

std::optional<uint64_t> ExecutionStart::Choose(const CaptureRecord& record,
                                               uint64_t now_monotonic_ns) {
  uint64_t highest = 0;
  bool all = true;
  for (const CaptureWorkerStatus& status : record.workers) {
    if (!IsRecording(status)) {
      // On its way to recording, it will have numbers too.
      all = all && status.state != CaptureWorkerState::kArmed;
      continue;
    }
    all = all && status.newest_execution > 0;
    highest = std::max(highest, status.newest_execution);
  }
  if (highest == 0) return std::nullopt;
  if (first_seen_ns_ == 0) {
    first_seen_ns_ = now_monotonic_ns;
    first_seen_ = highest;
  }
  const uint64_t watched_ns = now_monotonic_ns - first_seen_ns_;
  if (watched_ns < (all ? kObservedNs : kPatienceNs)) return std::nullopt;
  const uint64_t ran = highest > first_seen_ ? highest - first_seen_ : 0;
  const double per_ns = static_cast<double>(ran) / static_cast<double>(watched_ns);
  const auto ahead = static_cast<uint64_t>(per_ns * static_cast<double>(kAheadNs)) + 1;
  // What was reported is some time old as well: as much again.
  return highest + std::clamp(2 * ahead, kAheadMin, kAheadMax);
}

Coordinator::Coordinator(const Clock& clock, Random& random, CoordinatorOutputs outputs,
                         CoordinatorInputs inputs)
    : clock_(clock),
      restored_monotonic_ns_(clock.MonotonicNs()),
      random_(random),
      outputs_(std::move(outputs)),
      inputs_(std::move(inputs)) {}

SessionTime Coordinator::Now() const {
  const uint64_t realtime_ns = clock_.RealtimeNs();
  return {realtime_ns, clock_.MonotonicNs(),
          inputs_.reference_ns ? inputs_.reference_ns() : realtime_ns};
}

void Coordinator::RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                               uint64_t last_seen_realtime_ns) {
  registry_.Restore(std::move(info), first_seen_realtime_ns, last_seen_realtime_ns);
}

void Coordinator::RestoreCapture(CaptureRecord record) {
  const CaptureId id = record.id;
  RememberCut(record);
  auto session = std::make_unique<Session>(CaptureSession(std::move(record), Now()));
  if (!session->state.ended()) {
    running_[id] = std::move(session);
  } else if (session->state.IsOpen()) {
    KeepOpen(std::move(session));
  }
}

// The oldest give way: ids sort by time.
void Coordinator::KeepOpen(std::unique_ptr<Session> session) {
  const CaptureRecord& record = session->state.record();
  for (const CaptureAgentPart& part : record.agents) {
    if (!session->state.Awaits(part.agent_id)) continue;
    std::vector<Session*> waiting;
    for (const auto& [id, other] : late_) {
      if (other->state.Awaits(part.agent_id)) waiting.push_back(other.get());
    }
    if (waiting.size() < limits::kLateCapturesPerAgentMax) continue;
    waiting.front()->state.GiveUpOn(part.agent_id);
    waiting.front()->unsaved = true;
  }
  const CaptureId id = record.id;
  late_[id] = std::move(session);
  if (late_.size() > limits::kLateCapturesMax) {
    late_.begin()->second->state.GiveUpOnAll();
    late_.begin()->second->unsaved = true;
  }
}

absl::StatusOr<std::vector<ResumedCapture>> Coordinator::Connect(const AgentInfo& agent,
                                                                 ConnectionId from) {
  RETURN_IF_ERROR(registry_.Connect(agent, from, clock_.RealtimeNs()));
  outputs_.agent_changed(*registry_.Find(agent.agent_id));
  absl::StatusOr<std::vector<ResumedCapture>> resumed = JoinAll(agent);
  if (!resumed.ok()) Disconnect(agent.agent_id, from);
  return resumed;
}

absl::StatusOr<std::vector<ResumedCapture>> Coordinator::JoinAll(const AgentInfo& agent) {
  const SessionTime now = Now();
  std::vector<ResumedCapture> resumed;
  for (const auto& [id, session] : running_) {
    const size_t parts = session->state.record().agents.size();
    if (!session->state.Join(agent, now)) continue;
    // A part must be known before the agent records, or a restart would forget to ask for it.
    if (session->state.record().agents.size() != parts) session->must_be_durable = true;
    if (session->must_be_durable) Save(*session, /*durable=*/true);
    if (session->must_be_durable) {
      return Unavailable("agent {} has to wait: the record of capture {} cannot be written",
                         agent.agent_id, id.ToString());
    }
    resumed.push_back(ResumeFor(*session, agent));
  }
  for (const auto& [id, session] : late_) {
    if (!session->state.Join(agent, now)) continue;
    session->unsaved = true;
    resumed.push_back(ResumeFor(*session, agent));
  }
  return resumed;
}

// What the agent is to do about a capture from here on.
ResumedCapture Coordinator::ResumeFor(const Session& session, const AgentInfo& agent) {
  const CaptureRecord& record = session.state.record();
  ResumedCapture resume{.start = {.capture_id = record.id, .spec = record.spec}};
  if (record.state == CaptureState::kArming) {
    resume.start.arm = true;
    return resume;
  }
  resume.workers = session.state.ActiveWorkers(agent.instance_id);
  if (record.begin) resume.start.begin = BeginFor(agent, *record.begin);
  resume.stopping = record.state != CaptureState::kRecording;
  const uint64_t reference_ns = Now().reference_ns;
  if (resume.stopping || !record.begin || record.begin->reference_ns <= reference_ns) {
    return resume;
  }
  if (resume.start.begin->host_raw_ns != 0) return resume;
  // The moment lies ahead, and has to be waited for here.
  Delay(record.begin->reference_ns - reference_ns,
        {.capture_id = record.id, .agent_id = agent.agent_id});
  resume.start.arm = true;
  resume.start.begin.reset();
  return resume;
}

void Coordinator::Disconnect(const std::string& agent_id, ConnectionId from) {
  const SessionTime now = Now();
  if (!registry_.Disconnect(agent_id, from, now.realtime_ns)) return;
  outputs_.agent_changed(*registry_.Find(agent_id));
  for (Sessions* const sessions : {&running_, &late_}) {
    for (const auto& [id, session] : *sessions) {
      if (session->state.Leave(agent_id, now)) session->unsaved = true;
    }
  }
}

absl::Status Coordinator::CheckCurrent(const std::string& agent_id, ConnectionId from) const {
  if (registry_.IsCurrent(agent_id, from)) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kAborted, "agent {} has connected anew: this call is over",
                    agent_id);
}

absl::Status Coordinator::OnHeartbeat(const std::string& agent_id, ConnectionId from) {
  RETURN_IF_ERROR(CheckCurrent(agent_id, from));
  registry_.Touch(agent_id, clock_.RealtimeNs());
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorker(const std::string& agent_id, ConnectionId from,
                                   const WorkerInfo& worker) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  RETURN_IF_ERROR(registry_.PutWorker(agent_id, worker));
  outputs_.worker_changed(agent_id, worker);
  for (const auto& [id, session] : running_) {
    if (session->state.NoteWorker(agent_id, worker)) session->unsaved = true;
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerGone(const std::string& agent_id, ConnectionId from,
                                       const WorkerIdentity& worker) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  registry_.RemoveWorker(agent_id, worker);
  for (const auto& [id, session] : running_) {
    if (session->state.NoteWorkerGone(worker)) session->unsaved = true;
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerStatus(const std::string& agent_id, ConnectionId from,
                                         const CaptureWorkerStatus& status) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  Session* const session = FindSession(status.capture_id);
  if (session == nullptr) return absl::OkStatus();  // it is over
  CaptureWorkerStatus known = status;
  const auto& workers = registry_.Find(agent_id)->workers;
  const auto worker = workers.find(status.worker);
  const bool is_refused = status.state == CaptureWorkerState::kRefused && worker != workers.end();
  known.worker_state = is_refused ? worker->second.state : WorkerState::kUnspecified;
  session->unsaved = true;
  const bool is_news = session->state.OnWorkerStatus(agent_id, known, Now());
  // Before it begins all are judged, and counted, together.
  if (is_news && session->state.state() == CaptureState::kRecording &&
      known.state == CaptureWorkerState::kRefused && outputs_.refused) {
    outputs_.refused(known.obstacle, 1);
  }
  if (session->state.IsJudgementDue(Now())) {
    Tick();  // it was the last one
  } else if (is_news) {
    SaveSoon(*session);
  } else {
    outputs_.changed(session->state.record());
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnAgentStatus(const std::string& agent_id, ConnectionId from,
                                        const CaptureId& capture, uint32_t matched_workers,
                                        bool finished) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  Session* const session = FindSession(capture);
  if (session == nullptr) return absl::OkStatus();
  if (session->state.OnAgentStatus(agent_id, matched_workers, finished, Now())) {
    if (session->state.ended()) {
      session->state.End(Now(), DescribeInventory(registry_, session->state.record().spec));
      Save(*session, /*durable=*/true);
    } else {
      SaveSoon(*session);
    }
  }
  Tick();  // it may have been the last one
  return absl::OkStatus();
}

void Coordinator::Save(Session& session, bool durable) {
  const absl::Status status =
      outputs_.persist(session.state.record(), durable || session.must_be_durable);
  session.unsaved = !status.ok();
  if (status.ok()) session.must_be_durable = session.has_news = false;
  session.saved_ns = clock_.MonotonicNs();
  if (!status.ok()) {
    session.state.Warn(fmt::format("its record could not be written, and will be again: {}",
                                   std::string(status.message())));
  }
  outputs_.changed(session.state.record());
}

// A thousand workers change in a row; what they say together is written at once. While it arms
// nothing is: after a restart all are asked anew.
void Coordinator::SaveSoon(Session& session) {
  session.unsaved = session.has_news = true;
  if (session.state.state() != CaptureState::kArming &&
      clock_.MonotonicNs() >= session.saved_ns + limits::kRecordSaveNs) {
    Save(session, /*durable=*/false);
  } else {
    outputs_.changed(session.state.record());
  }
}

void Coordinator::TickLate(const SessionTime& now) {
  for (auto it = late_.begin(); it != late_.end();) {
    Session& session = *it->second;
    if (session.state.IsOverdue(now)) {
      session.state.GiveUpOnAll();
      session.unsaved = true;
    }
    const bool is_over = !session.state.IsOpen();
    if (session.unsaved && (is_over || now.monotonic_ns >= session.saved_ns + kSaveIntervalNs)) {
      Save(session, is_over);
    }
    it = is_over && !session.unsaved ? late_.erase(it) : std::next(it);
  }
}

void Coordinator::Forget(const CaptureId& capture) { late_.erase(capture); }

Coordinator::Session* Coordinator::FindSession(const CaptureId& capture) const {
  for (const Sessions* const sessions : {&running_, &late_}) {
    const auto it = sessions->find(capture);
    if (it != sessions->end()) return it->second.get();
  }
  return nullptr;
}

const CaptureRecord* Coordinator::Find(const CaptureId& capture) const {
  const Session* const session = FindSession(capture);
  return session == nullptr ? nullptr : &session->state.record();
}

void Coordinator::Warn(const CaptureId& capture, std::string warning) {
  const auto it = running_.find(capture);
  if (it == running_.end()) return;
  it->second->state.Warn(std::move(warning));
  Save(*it->second, false);
}

const CaptureRecord* Coordinator::FindRunning(const CaptureId& capture) const {
  const auto it = running_.find(capture);
  return it == running_.end() ? nullptr : &it->second->state.record();
}

void Coordinator::ForEachRunning(const std::function<void(const CaptureRecord&)>& visit) const {
  for (const auto& [id, session] : running_) visit(session->state.record());
}

std::vector<CaptureRecord> Coordinator::Running() const {
  std::vector<CaptureRecord> records;
  ForEachRunning([&](const CaptureRecord& record) { records.push_back(record); });
  return records;
}

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
  if (session.record().spec.conditions.require_percent == 0 || now.monotonic_ns >= back_by_ns)
    return;
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
  Cut& cut = cuts_[record.spec.timing.flight_recorder];
  if (cut.reference_ns < record.begin->reference_ns) {
    cut = {record.spec, record.begin->reference_ns};
  }
}

void Coordinator::WarnOfEarlierCut(const CaptureBegin& begin, CaptureSession& snapshot) const {
  const CaptureSpec& spec = snapshot.record().spec;
  const auto earlier = cuts_.find(spec.timing.flight_recorder);
  if (spec.mode != CaptureMode::kSnapshot || earlier == cuts_.end()) return;
  const Cut& cut = earlier->second;
  if (cut.reference_ns >= begin.reference_ns || !MayOverlap(spec, cut.spec)) return;
  if (begin.reference_ns - cut.reference_ns >= spec.timing.last_ns) return;
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
                         (!spec.filter.include_neuron && !record.agents.empty());
  const uint64_t arm_ns = now.realtime_ns - std::min(now.realtime_ns, record.started_realtime_ns);
  const uint64_t lead_ns = BeginLeadNs(judged.SlowestAnswerNs(), write_ns_);
  const bool begins = is_anyone && tally.IsEnoughFor(spec);
  if (begins) {
    CaptureBegin begin{.reference_ns = now.reference_ns + lead_ns};
    begin.first_execution = spec.conditions.at_execution;
    begin.last_execution = LastExecution(spec, spec.conditions.at_execution);
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
  if (record.spec.conditions.at_next_execution && record.begin &&
      record.begin->first_execution == 0) {
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

CaptureBegin Coordinator::BeginFor(const AgentInfo& agent, const CaptureBegin& begin) const {
  CaptureBegin told = begin;
  told.host_raw_ns = told.bound_ns = 0;
  if (!inputs_.host_moment) return told;
  const std::optional<MomentOnHost> moment = inputs_.host_moment(agent, begin.reference_ns);
  if (!moment) return told;
  told.host_raw_ns = moment->raw_ns;
  told.bound_ns = moment->bound_ns;
  return told;
}

uint64_t Coordinator::WidestBound(const CaptureRecord& record, const CaptureBegin& begin) const {
  uint64_t widest_ns = 0;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    widest_ns = std::max(widest_ns, BeginFor(agent->info, begin).bound_ns);
  }
  return widest_ns;
}

void Coordinator::SendBegin(const CaptureRecord& record, uint64_t in_ns) {
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    const CaptureBegin begin = BeginFor(agent->info, *record.begin);
    if (begin.host_raw_ns != 0) {
      outputs_.send(part.agent_id, *agent->connection, BeginOrder{record.id, begin});
    } else {
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id});
    }
  }
}

void Coordinator::SendStop(const CaptureRecord& record, uint64_t in_ns) {
  // What was to begin later does not.
  if (in_ns == 0) {
    std::erase_if(delayed_, [&](const auto& item) { return item.second.capture_id == record.id; });
  }
  CaptureBegin moment;
  moment.reference_ns = Now().reference_ns + in_ns;
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    const uint64_t raw_ns = in_ns > 0 ? BeginFor(agent->info, moment).host_raw_ns : 0;
    if (in_ns > 0 && raw_ns == 0) {
      Delay(in_ns, {.capture_id = record.id, .agent_id = part.agent_id, .is_stop = true});
    } else {
      outputs_.send(part.agent_id, *agent->connection, StopOrder{record.id, raw_ns});
    }
  }
}

void Coordinator::SendToAll(const CaptureRecord& record, const CaptureOrder& order) {
  for (const CaptureAgentPart& part : record.agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    outputs_.send(part.agent_id, *agent->connection, order);
  }
}

void Coordinator::Delay(uint64_t in_ns, DelayedOrder order) {
  delayed_.emplace(clock_.MonotonicNs() + in_ns, std::move(order));
  if (outputs_.wake) outputs_.wake(in_ns);
}

void Coordinator::SendDelayed(uint64_t now_monotonic_ns) {
  while (!delayed_.empty() && delayed_.begin()->first <= now_monotonic_ns) {
    const DelayedOrder order = std::move(delayed_.begin()->second);
    delayed_.erase(delayed_.begin());
    const KnownAgent* const agent = registry_.Find(order.agent_id);
    const Session* const session = FindSession(order.capture_id);
    // It is told all of it when it returns.
    if (session == nullptr || agent == nullptr || !agent->connection) continue;
    const CaptureRecord& record = session->state.record();
    if (order.is_stop) {
      outputs_.send(order.agent_id, *agent->connection, StopOrder{record.id});
    } else {
      outputs_.send(order.agent_id, *agent->connection,
                    BeginOrder{record.id, BeginFor(agent->info, *record.begin)});
    }
  }
}

}  // namespace neurontrace
