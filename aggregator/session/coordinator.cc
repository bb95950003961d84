// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/coordinator.h"

#include <utility>

#include "aggregator/session/inventory_words.h"
#include "base/status.h"
#include "trace/capture_limits.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// What agents bring late is written now and then.
constexpr uint64_t kLateSaveIntervalNs = 1'000'000'000;

}  // namespace

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
  resume.workers = session.state.WorkersGoingOn(agent.instance_id);
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
    if (session.unsaved &&
        (is_over || now.monotonic_ns >= session.saved_ns + kLateSaveIntervalNs)) {
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

}  // namespace neurontrace
