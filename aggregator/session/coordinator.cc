// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/coordinator.h"

#include <utility>

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// Counters of workers are written now and then, states at once.
constexpr uint64_t kSaveIntervalNs = 1'000'000'000;
// How many workers the warning of a capture that matched none names.
constexpr size_t kWorkersNamed = 8;

}  // namespace

Coordinator::Coordinator(const Clock& clock, Random& random, CoordinatorOutputs outputs)
    : clock_(clock), random_(random), outputs_(std::move(outputs)) {}

SessionTime Coordinator::Now() const { return {clock_.RealtimeNs(), clock_.MonotonicNs()}; }

void Coordinator::RestoreAgent(AgentInfo info, uint64_t first_seen_realtime_ns,
                               uint64_t last_seen_realtime_ns) {
  registry_.Restore(std::move(info), first_seen_realtime_ns, last_seen_realtime_ns);
}

void Coordinator::RestoreCapture(CaptureRecord record) {
  const CaptureId id = record.id;
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
    resumed.push_back({.start = {id, session->state.record().spec},
                       .stopping = session->state.state() == CaptureState::kStopping,
                       .workers = session->state.WorkersGoingOn(agent.instance_id)});
  }
  for (const auto& [id, session] : late_) {
    if (!session->state.Join(agent, now)) continue;
    session->unsaved = true;
    resumed.push_back({.start = {id, session->state.record().spec},
                       .stopping = true,
                       .workers = session->state.WorkersGoingOn(agent.instance_id)});
  }
  return resumed;
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
  if (session->state.OnWorkerStatus(agent_id, known, Now())) {
    Save(*session, /*durable=*/false);
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
    if (session->state.ended()) session->state.End(Now(), DescribeWorkers());
    Save(*session, /*durable=*/session->state.ended());
  }
  Tick();  // it may have been the last one
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> Coordinator::StartCapture(const CaptureSpec& spec) {
  if (running_.size() >= limits::kCapturesRunningMax) {
    return ResourceExhausted("{} captures are running, which is the limit: stop one first",
                             running_.size());
  }
  const SessionTime now = Now();
  const CaptureId id = CaptureId::Make(clock_, random_);
  auto session = std::make_unique<Session>(CaptureSession(id, spec, now));
  std::vector<const KnownAgent*> asked;
  for (const auto& [agent_id, agent] : registry_.agents()) {
    if (agent.connection && session->state.Join(agent.info, now)) asked.push_back(&agent);
  }
  for (const auto& [agent_id, agent] : registry_.agents()) {
    for (const auto& [identity, worker] : agent.workers) {
      session->state.NoteWorker(agent_id, worker);
    }
    const bool was_here_lately =
        agent.last_seen_realtime_ns + limits::kAgentMissedForNs >= now.realtime_ns;
    if (!agent.connection && was_here_lately && session->state.Selects(agent.info)) {
      session->state.NoteAwayAgent(agent.info);
    }
  }
  RETURN_IF_ERROR(outputs_.persist(session->state.record(), /*durable=*/true));
  session->saved_monotonic_ns = now.monotonic_ns;
  for (const KnownAgent* const agent : asked) {
    outputs_.send(agent->info.agent_id, *agent->connection, StartOrder{id, spec});
  }
  const CaptureRecord record = session->state.record();
  running_[id] = std::move(session);
  outputs_.changed(record);
  return record;
}

absl::StatusOr<CaptureRecord> Coordinator::StopCapture(const CaptureId& capture) {
  const auto it = running_.find(capture);
  if (it == running_.end()) return NotFound("capture {} is not running", capture.ToString());
  RETURN_IF_ERROR(Stop(*it->second));
  const CaptureRecord record = it->second->state.record();
  Tick();  // there may be nothing to wait for
  return record;
}

absl::Status Coordinator::Stop(Session& session) {
  if (session.state.state() != CaptureState::kRecording) return absl::OkStatus();
  const SessionTime now = Now();
  CaptureSession stopping = session.state;
  stopping.Stop(now);
  if (absl::Status status = outputs_.persist(stopping.record(), /*durable=*/true); !status.ok()) {
    session.unsaved = true;
    session.stop_again_monotonic_ns = now.monotonic_ns + kSaveIntervalNs;
    return status;
  }
  session.state = std::move(stopping);
  session.unsaved = session.must_be_durable = false;
  session.saved_monotonic_ns = now.monotonic_ns;
  outputs_.changed(session.state.record());
  for (const CaptureAgentPart& part : session.state.record().agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    outputs_.send(part.agent_id, *agent->connection, StopOrder{session.state.record().id});
  }
  return absl::OkStatus();
}

void Coordinator::Save(Session& session, bool durable) {
  const absl::Status status =
      outputs_.persist(session.state.record(), durable || session.must_be_durable);
  session.unsaved = !status.ok();
  if (status.ok()) session.must_be_durable = false;
  session.saved_monotonic_ns = clock_.MonotonicNs();
  if (!status.ok()) {
    session.state.Warn(fmt::format("its record could not be written, and will be again: {}",
                                   std::string(status.message())));
  }
  outputs_.changed(session.state.record());
}

void Coordinator::Tick() {
  const SessionTime now = Now();
  for (auto it = running_.begin(); it != running_.end();) {
    Session& session = *it->second;
    if (session.state.IsStopDue(now) && now.monotonic_ns >= session.stop_again_monotonic_ns) {
      const absl::Status stopped = Stop(session);
      if (!stopped.ok()) {
        session.state.Warn(fmt::format("its time was over, but that could not be written down: {}",
                                       std::string(stopped.message())));
      }
    }
    if (session.state.IsEndDue(now)) {
      session.state.End(now, DescribeWorkers());
      Save(session, /*durable=*/true);
    } else if (session.unsaved &&
               now.monotonic_ns >= session.saved_monotonic_ns + kSaveIntervalNs) {
      Save(session, session.state.ended());
    }
    // One that has ended stays until its end is on disk.
    if (!session.state.ended() || session.unsaved) {
      ++it;
      continue;
    }
    std::unique_ptr<Session> ended = std::move(it->second);
    it = running_.erase(it);
    if (ended->state.IsOpen()) KeepOpen(std::move(ended));
  }
  TickLate(now);
}

void Coordinator::TickLate(const SessionTime& now) {
  for (auto it = late_.begin(); it != late_.end();) {
    Session& session = *it->second;
    if (session.state.IsOverdue(now)) {
      session.state.GiveUpOnAll();
      session.unsaved = true;
    }
    const bool is_over = !session.state.IsOpen();
    if (session.unsaved &&
        (is_over || now.monotonic_ns >= session.saved_monotonic_ns + kSaveIntervalNs)) {
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

std::string Coordinator::DescribeWorkers() const {
  const size_t workers = registry_.workers();
  if (registry_.connected() == 0) return "no agent is connected";
  if (workers == 0) {
    return fmt::format("{} agents are connected and report no worker", registry_.connected());
  }
  std::string text = fmt::format("{} workers exist:", workers);
  size_t named = 0;
  for (const auto& [agent_id, agent] : registry_.agents()) {
    for (const auto& [identity, worker] : agent.workers) {
      if (named == kWorkersNamed) return text + ", …";
      text += fmt::format("{} {}{}", named == 0 ? "" : ",", ToString(identity),
                          worker.job.empty() ? "" : fmt::format(" (job {})", worker.job));
      ++named;
    }
  }
  return text;
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

std::vector<CaptureRecord> Coordinator::Running() const {
  std::vector<CaptureRecord> records;
  for (const auto& [id, session] : running_) records.push_back(session->state.record());
  return records;
}

}  // namespace neurontrace
