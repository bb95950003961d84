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
  running_[id] = std::make_unique<Session>(CaptureSession(std::move(record), Now()));
}

absl::StatusOr<std::vector<ResumedCapture>> Coordinator::Connect(const AgentInfo& agent,
                                                                 ConnectionId from) {
  const SessionTime now = Now();
  RETURN_IF_ERROR(registry_.Connect(agent, from, now.realtime_ns));
  outputs_.agent_changed(*registry_.Find(agent.agent_id));
  std::vector<ResumedCapture> resumed;
  for (const auto& [id, session] : running_) {
    const size_t parts = session->state.record().agents.size();
    if (!session->state.Join(agent, now)) continue;
    // A part must be known before the agent records, or a restart would forget to ask for it.
    if (session->state.record().agents.size() != parts) Save(*session, /*durable=*/true);
    resumed.push_back({.start = {id, session->state.record().spec},
                       .stopping = session->state.state() == CaptureState::kStopping,
                       .workers = session->state.WorkersGoingOn(agent.instance_id)});
  }
  return resumed;
}

void Coordinator::Disconnect(const std::string& agent_id, ConnectionId from) {
  const SessionTime now = Now();
  if (!registry_.Disconnect(agent_id, from, now.realtime_ns)) return;
  outputs_.agent_changed(*registry_.Find(agent_id));
  for (const auto& [id, session] : running_) session->state.Leave(agent_id, now);
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
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerGone(const std::string& agent_id, ConnectionId from,
                                       const WorkerIdentity& worker) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  registry_.RemoveWorker(agent_id, worker);
  return absl::OkStatus();
}

absl::Status Coordinator::OnWorkerStatus(const std::string& agent_id, ConnectionId from,
                                         const CaptureWorkerStatus& status) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  const auto it = running_.find(status.capture_id);
  if (it == running_.end()) return absl::OkStatus();  // it has ended meanwhile
  it->second->unsaved = true;
  if (it->second->state.OnWorkerStatus(agent_id, status, Now())) {
    Save(*it->second, /*durable=*/false);
  } else {
    outputs_.changed(it->second->state.record());
  }
  return absl::OkStatus();
}

absl::Status Coordinator::OnAgentStatus(const std::string& agent_id, ConnectionId from,
                                        const CaptureId& capture, uint32_t matched_workers,
                                        bool finished) {
  RETURN_IF_ERROR(OnHeartbeat(agent_id, from));
  const auto it = running_.find(capture);
  if (it == running_.end()) return absl::OkStatus();
  if (it->second->state.OnAgentStatus(agent_id, matched_workers, finished, Now())) {
    Save(*it->second, /*durable=*/false);
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
  Stop(*it->second);
  const CaptureRecord record = it->second->state.record();
  Tick();  // there may be nothing to wait for
  return record;
}

void Coordinator::Stop(Session& session) {
  if (session.state.state() != CaptureState::kRecording) return;
  session.state.Stop(Now());
  Save(session, /*durable=*/true);
  for (const CaptureAgentPart& part : session.state.record().agents) {
    const KnownAgent* const agent = registry_.Find(part.agent_id);
    if (agent == nullptr || !agent->connection) continue;
    outputs_.send(part.agent_id, *agent->connection, StopOrder{session.state.record().id});
  }
}

void Coordinator::Save(Session& session, bool durable) {
  const absl::Status status = outputs_.persist(session.state.record(), durable);
  session.unsaved = !status.ok();
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
    if (session.state.IsStopDue(now)) Stop(session);
    if (session.state.IsEndDue(now)) {
      session.state.End(now, DescribeWorkers());
      Save(session, /*durable=*/true);
    } else if (session.unsaved &&
               now.monotonic_ns >= session.saved_monotonic_ns + kSaveIntervalNs) {
      Save(session, session.state.ended());
    }
    // One that has ended stays until its end is on disk.
    it = session.state.ended() && !session.unsaved ? running_.erase(it) : std::next(it);
  }
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
