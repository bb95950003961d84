// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/session/execution_stop_policy.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/capture_obstacle.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// States in which a worker cannot record, which say why it did not.
constexpr bool IsObstacle(WorkerState state) { return ObstacleOf(state) != CaptureObstacle::kNone; }

// A process that ends does not make its earlier reason untrue.
constexpr WorkerState Obstacle(WorkerState known, WorkerState now) {
  if (!IsObstacle(now) || (IsObstacle(known) && now == WorkerState::kClosed)) return known;
  return now;
}

// Time is let pass every 20 ms while a capture records: the order is to be out before the moment.
constexpr uint64_t kStopLeadMinNs = 60'000'000;

// What an agent that has been asked to arm has still to say.
bool IsUnanswered(const CaptureWorkerStatus& status) {
  return status.state == CaptureWorkerState::kStarting ||
         status.state == CaptureWorkerState::kUnspecified;
}

// An agent that came back knows neither when a worker began that it found recording, nor what it
// executed before.
void KeepBeginning(const CaptureWorkerStatus& before, CaptureWorkerStatus& status) {
  if (before.begun_realtime_ns != 0) {
    status.begun_realtime_ns = before.begun_realtime_ns;
    status.begin_offset_ns = before.begin_offset_ns;
    status.begun_as_planned = before.begun_as_planned;
    status.joined_late = before.joined_late;
  }
  if (before.first_execution == 0) return;
  if (status.first_execution == 0) {
    status.first_execution = before.first_execution;
    status.newest_execution = std::max(status.newest_execution, before.newest_execution);
  } else {
    status.first_execution = std::min(status.first_execution, before.first_execution);
  }
}

uint64_t Plus(uint64_t ns, uint64_t more_ns) {
  return more_ns > UINT64_MAX - ns ? UINT64_MAX : ns + more_ns;
}

// Selected, and nobody has said why it does not record.
bool IsUnexplained(const NonParticipant& bystander) {
  return bystander.reason == BystanderReason::kNotReported && bystander.detail.empty();
}

// The obstacle of a worker whose agent has reported no other.
std::string DetailOf(CaptureObstacle obstacle) {
  switch (obstacle) {
    case CaptureObstacle::kOtherProfiler:
      return "another profiler is at work in it";
    case CaptureObstacle::kRuntimeTooOld:
      return "its runtime cannot be traced this way";
    case CaptureObstacle::kNoTap:
      return "it uses the runtime and was started without the tap: LD_PRELOAD "
             "libneurontrace_tap.so";
    case CaptureObstacle::kNotInitialised:
      return "it has not called nrt_init yet";
    case CaptureObstacle::kEnded:
      return "it has closed the runtime";
    case CaptureObstacle::kRuntimeRefused:
      return "its runtime has refused to trace";
    case CaptureObstacle::kNotArmed:
      return "its agent is of an earlier version, which cannot do this: update it";
    default:
      return "";
  }
}

}  // namespace

CaptureSession::CaptureSession(const CaptureId& id, const CaptureSpec& spec,
                               const SessionTime& now) {
  record_.id = id;
  record_.spec = spec;
  record_.state = CaptureState::kArming;
  record_.started_realtime_ns = now.realtime_ns;
  arming_monotonic_ns_ = now.monotonic_ns;
  arm_due_monotonic_ns_ = now.monotonic_ns + limits::kArmPatienceNs;
}

CaptureSession::CaptureSession(CaptureRecord record, const SessionTime& now)
    : record_(std::move(record)) {
  if (record_.state == CaptureState::kArming) {
    // What was said is as old as the aggregator's absence: everybody says it again.
    record_.workers.clear();
    for (CaptureAgentPart& part : record_.agents) part.reported = false;
    arming_monotonic_ns_ = now.monotonic_ns;
    arm_due_monotonic_ns_ = now.monotonic_ns + limits::kAgentReturnMaxNs;
    awaits_absent_ = true;
  }
  IndexWorkers();
  IndexBystanders();
  for (size_t i = 0; i < record_.agents.size(); ++i) {
    CaptureAgentPart& part = record_.agents[i];
    presence_[part.agent_id] = {.connected = false,
                                .changed_monotonic_ns = now.monotonic_ns,
                                .heard_monotonic_ns = now.monotonic_ns,
                                .part = i};
    agent_of_[part.instance_id] = part.agent_id;
    if (part.away_since_realtime_ns == 0) part.away_since_realtime_ns = now.realtime_ns;
  }
  if (record_.state == CaptureState::kStopping) stopped_monotonic_ns_ = now.monotonic_ns;
  if (record_.state == CaptureState::kRecording) SetDue(now);
}

// The time that the aggregator was away counts: the reference goes on, and where nothing was
// planned the wall clock is all that is left of it.
void CaptureSession::SetDue(const SessionTime& now) {
  uint64_t length_ns = record_.spec.duration_ns;
  const bool is_from_execution = CountsFromExecution();
  if (is_from_execution && !HasReachedExecutions(record_)) return;
  if (record_.spec.mode == CaptureMode::kPreview) length_ns = limits::kPreviewMeasureNs;
  const bool is_cut = record_.spec.mode == CaptureMode::kSnapshot;
  if (length_ns == 0 && !is_cut) return;
  if (is_cut) length_ns = 0;
  uint64_t then_ns = record_.begin ? record_.begin->reference_ns : record_.started_realtime_ns;
  const uint64_t now_ns = record_.begin ? now.reference_ns : now.realtime_ns;
  // When that was is not written down: after a restart it counts anew.
  if (is_from_execution) then_ns = now_ns;
  const uint64_t end_ns = Plus(then_ns, length_ns);
  stop_due_monotonic_ns_ = Plus(now.monotonic_ns, end_ns > now_ns ? end_ns - now_ns : 0);
  if (is_cut) return;
  stop_lead_ns_ = std::min(std::max(BeginLeadNs(SlowestAnswerNs(), 0), kStopLeadMinNs), length_ns);
}

bool CaptureSession::CountsFromExecution() const {
  return record_.spec.by_execution() && record_.spec.mode == CaptureMode::kStream &&
         !presence_.empty();
}

bool CaptureSession::Selects(const AgentInfo& agent) const {
  const auto& ids = record_.spec.instance_ids;
  return ids.empty() || std::find(ids.begin(), ids.end(), agent.instance_id) != ids.end();
}

// --- Parts ---------------------------------------------------------------------------------------

CaptureAgentPart* CaptureSession::FindPart(std::string_view agent_id) {
  const auto it = presence_.find(agent_id);
  return it == presence_.end() ? nullptr : &record_.agents[it->second.part];
}

const CaptureAgentPart* CaptureSession::FindPart(std::string_view agent_id) const {
  return const_cast<CaptureSession*>(this)->FindPart(agent_id);
}

const CaptureSession::Presence* CaptureSession::PresenceOf(const WorkerIdentity& worker) const {
  const auto agent = agent_of_.find(worker.instance_id);
  if (agent == agent_of_.end()) return nullptr;
  const auto it = presence_.find(agent->second);
  return it == presence_.end() ? nullptr : &it->second;
}

bool CaptureSession::Awaits(std::string_view agent_id) const {
  const CaptureAgentPart* const part = FindPart(agent_id);
  return part != nullptr && !part->finished && !part->given_up;
}

bool CaptureSession::IsOpen() const {
  return ended() && std::any_of(record_.agents.begin(), record_.agents.end(),
                                [](const auto& part) { return !part.finished && !part.given_up; });
}

void CaptureSession::GiveUpOn(std::string_view agent_id) {
  if (CaptureAgentPart* const part = FindPart(agent_id)) part->given_up = !part->finished;
}

void CaptureSession::GiveUpOnAll() {
  for (CaptureAgentPart& part : record_.agents) part.given_up = !part.finished;
}

bool CaptureSession::IsOverdue(const SessionTime& now) const {
  return ended() && now.realtime_ns >= record_.ended_realtime_ns + limits::kLateAgentMaxNs;
}

std::vector<WorkerIdentity> CaptureSession::ActiveWorkers(std::string_view instance_id) const {
  std::vector<WorkerIdentity> workers;
  for (const CaptureWorkerStatus& status : record_.workers) {
    if (status.framework || IsFinal(status.state)) continue;
    // Whoever has not begun has nothing that could go on.
    if (status.state == CaptureWorkerState::kArmed) continue;
    if (status.obstacle == CaptureObstacle::kNoAnswer) continue;
    if (status.worker.instance_id == instance_id) workers.push_back(status.worker);
  }
  return workers;
}

void CaptureSession::Await(const std::string& agent_id, uint64_t until_monotonic_ns) {
  awaited_.insert(agent_id);
  arm_due_monotonic_ns_ = std::max(arm_due_monotonic_ns_, until_monotonic_ns);
}

bool CaptureSession::Join(const AgentInfo& agent, const SessionTime& now) {
  if (!Selects(agent)) return false;
  awaited_.erase(agent.agent_id);
  CaptureAgentPart* part = FindPart(agent.agent_id);
  if (part == nullptr) {
    if (record_.state != CaptureState::kRecording && record_.state != CaptureState::kArming) {
      return false;
    }
    RemoveBystander({.instance_id = agent.instance_id});
    part = &record_.agents.emplace_back();
    part->agent_id = agent.agent_id;
    part->instance_id = agent.instance_id;
    agent_of_[agent.instance_id] = agent.agent_id;
  }
  ForgetLost(agent.instance_id);
  part->away_since_realtime_ns = 0;
  const auto index = static_cast<size_t>(part - record_.agents.data());
  presence_[agent.agent_id] = {.connected = true,
                               .changed_monotonic_ns = now.monotonic_ns,
                               .heard_monotonic_ns = now.monotonic_ns,
                               .part = index};
  return Awaits(agent.agent_id);
}

bool CaptureSession::Leave(std::string_view agent_id, const SessionTime& now) {
  const auto it = presence_.find(agent_id);
  if (it == presence_.end()) return false;
  it->second.connected = false;
  it->second.changed_monotonic_ns = now.monotonic_ns;
  const CaptureAgentPart& part = record_.agents[it->second.part];
  record_.agents[it->second.part].away_since_realtime_ns = now.realtime_ns;
  for (CaptureWorkerStatus& status : record_.workers) {
    if (part.finished || status.worker.instance_id != part.instance_id) continue;
    if (!IsFinal(status.state) && status.obstacle == CaptureObstacle::kNone) {
      status.obstacle = CaptureObstacle::kAgentLost;
    }
  }
  return true;
}

// --- Workers -------------------------------------------------------------------------------------

void CaptureSession::IndexWorkers() {
  worker_at_.clear();
  for (size_t i = 0; i < record_.workers.size(); ++i) {
    worker_at_[{record_.workers[i].worker, record_.workers[i].framework}] = i;
  }
}

CaptureWorkerStatus* CaptureSession::FindWorker(const WorkerIdentity& worker) {
  const auto it = worker_at_.find({worker, false});
  return it == worker_at_.end() ? nullptr : &record_.workers[it->second];
}

CaptureWorkerStatus* CaptureSession::AddWorker(CaptureWorkerStatus status) {
  if (record_.workers.size() >= limits::kCaptureWorkersMax) {
    Warn(fmt::format("more than {} workers report: the status of further ones is not kept",
                     limits::kCaptureWorkersMax));
    return nullptr;
  }
  worker_at_[{status.worker, status.framework}] = record_.workers.size();
  return &record_.workers.emplace_back(std::move(status));
}

bool CaptureSession::OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                                    const SessionTime& now) {
  const CaptureAgentPart* const part = FindPart(agent_id);
  if (part == nullptr || status.worker.instance_id != part->instance_id) return false;
  if (ended() && !Awaits(agent_id)) return false;
  presence_.find(agent_id)->second.heard_monotonic_ns = now.monotonic_ns;
  const auto it = worker_at_.find({status.worker, status.framework});
  if (it == worker_at_.end()) {
    CaptureWorkerStatus* const added = AddWorker(status);
    if (added == nullptr) return false;
    added->worker_state = WorkerState::kUnspecified;
    if (!status.framework) {
      added->worker_state = Obstacle(RemoveBystander(status.worker), status.worker_state);
    }
    NoteExecution(status, now);
    return true;
  }
  CaptureWorkerStatus& known = record_.workers[it->second];
  const bool is_news = known.state != status.state || known.detail != status.detail ||
                       known.obstacle != status.obstacle;
  const WorkerState worker_state = Obstacle(known.worker_state, status.worker_state);
  const CaptureWorkerStatus before = std::exchange(known, status);
  known.worker_state = worker_state;
  KeepBeginning(before, known);
  NoteExecution(status, now);
  return is_news;
}

void CaptureSession::NoteExecution(const CaptureWorkerStatus& status, const SessionTime& now) {
  const bool is_first = status.first_execution != 0 && stop_due_monotonic_ns_ == 0;
  if (is_first && record_.state == CaptureState::kRecording && CountsFromExecution()) SetDue(now);
}

bool CaptureSession::OnAgentStatus(std::string_view agent_id, uint32_t matched_workers,
                                   bool finished, const SessionTime& now) {
  CaptureAgentPart* const part = FindPart(agent_id);
  if (part == nullptr || (ended() && !Awaits(agent_id))) return false;
  Presence& presence = presence_.find(agent_id)->second;
  presence.heard_monotonic_ns = now.monotonic_ns;
  if (presence.answered_monotonic_ns == 0) presence.answered_monotonic_ns = now.monotonic_ns;
  const CaptureAgentPart before = *part;
  part->reported = true;
  part->matched_workers = std::max(part->matched_workers, matched_workers);
  // An agent is asked to stop before it can have finished; what a confused one says earlier must
  // not end its part. A snapshot is over by itself.
  const bool may_finish =
      record_.state == CaptureState::kStopping || ended() ||
      (record_.state == CaptureState::kRecording && record_.spec.mode == CaptureMode::kSnapshot);
  part->finished = part->finished || (finished && may_finish);
  return *part != before;
}

// --- Arming --------------------------------------------------------------------------------------

bool CaptureSession::IsJudgementDue(const SessionTime& now) const {
  if (record_.state != CaptureState::kArming) return false;
  if (now.monotonic_ns >= arm_due_monotonic_ns_) return true;
  if (!awaited_.empty()) return false;
  for (const auto& [agent_id, presence] : presence_) {
    if (!presence.connected) {
      if (awaits_absent_) return false;
    } else if (presence.answered_monotonic_ns == 0) {
      return false;
    }
  }
  // An agent may speak before all of its taps have.
  const auto is_awaited = [&](const WorkerIdentity& worker) {
    const Presence* const presence = PresenceOf(worker);
    return presence != nullptr && presence->connected;
  };
  for (const CaptureWorkerStatus& status : record_.workers) {
    if (IsUnanswered(status) && !status.framework && is_awaited(status.worker)) return false;
  }
  return std::none_of(
      record_.bystanders.begin(), record_.bystanders.end(), [&](const NonParticipant& bystander) {
        return bystander.reason == BystanderReason::kNotReported && bystander.detail.empty() &&
               is_awaited(bystander.worker) && BlockingReason(bystander) == CaptureObstacle::kNone;
      });
}

uint64_t CaptureSession::SlowestAnswerNs() const {
  uint64_t slowest_ns = 0;
  for (const auto& [agent_id, presence] : presence_) {
    if (presence.answered_monotonic_ns <= arming_monotonic_ns_) continue;
    slowest_ns = std::max(slowest_ns, presence.answered_monotonic_ns - arming_monotonic_ns_);
  }
  return slowest_ns;
}

ArmingTally CaptureSession::Judge() {
  for (CaptureWorkerStatus& status : record_.workers) {
    if (status.framework || !IsUnanswered(status) || status.obstacle != CaptureObstacle::kNone) {
      continue;
    }
    const Presence* const presence = PresenceOf(status.worker);
    if (presence == nullptr) continue;
    status.obstacle =
        presence->connected ? CaptureObstacle::kNoAnswer : CaptureObstacle::kAgentLost;
    if (status.detail.empty()) status.detail = "it has not said in time that it is armed";
  }
  const std::vector<NonParticipant> bystanders = record_.bystanders;
  for (const NonParticipant& bystander : bystanders) {
    if (bystander.reason != BystanderReason::kNotReported || !bystander.detail.empty()) continue;
    const Presence* const presence = PresenceOf(bystander.worker);
    if (const CaptureObstacle obstacle = BlockingReason(bystander);
        obstacle != CaptureObstacle::kNone) {
      AddParticipant(bystander, CaptureWorkerState::kRefused, obstacle, "");
    } else if (presence == nullptr || !presence->connected) {
      AddParticipant(bystander, CaptureWorkerState::kStarting, CaptureObstacle::kAgentLost,
                     "its agent has gone");
    } else {
      AddParticipant(bystander, CaptureWorkerState::kStarting, CaptureObstacle::kNoAnswer,
                     "it has not said in time that it is armed");
    }
  }
  return Tally(record_);
}

void CaptureSession::Begin(const CaptureBegin& begin, const SessionTime& now) {
  record_.begin = begin;
  record_.begin->host_raw_ns = 0;  // each host has another
  record_.state = CaptureState::kRecording;
  record_.armed_realtime_ns = now.realtime_ns;
  SetDue(now);
}

void CaptureSession::NotBegin(const SessionTime& now, std::string why) {
  record_.state = CaptureState::kNotBegun;
  record_.armed_realtime_ns = record_.ended_realtime_ns = now.realtime_ns;
  // Nobody has anything that could be waited for.
  for (CaptureAgentPart& part : record_.agents) part.finished = true;
  record_.end_warnings.clear();
  WarnInto(record_.end_warnings, std::move(why));
}

void CaptureSession::SetExecutions(uint64_t first, uint64_t last) {
  if (!record_.begin) return;
  record_.begin->first_execution = first;
  record_.begin->last_execution = last;
}

// --- Bystanders ----------------------------------------------------------------------------------

void CaptureSession::IndexBystanders() {
  bystander_at_.clear();
  for (size_t i = 0; i < record_.bystanders.size(); ++i) {
    bystander_at_[record_.bystanders[i].worker] = i;
  }
}

NonParticipant* CaptureSession::FindBystander(const WorkerIdentity& worker) {
  const auto it = bystander_at_.find(worker);
  return it == bystander_at_.end() ? nullptr : &record_.bystanders[it->second];
}

void CaptureSession::AddBystander(NonParticipant bystander) {
  if (record_.bystanders.size() < limits::kCaptureBystandersMax) {
    bystander_at_[bystander.worker] = record_.bystanders.size();
    record_.bystanders.push_back(std::move(bystander));
  } else {
    Warn(fmt::format("more than {} workers have no part in it: further ones are not named",
                     limits::kCaptureBystandersMax));
  }
}

WorkerState CaptureSession::RemoveBystander(const WorkerIdentity& worker) {
  states_.erase(worker);
  const auto it = bystander_at_.find(worker);
  if (it == bystander_at_.end()) return WorkerState::kUnspecified;
  const size_t index = it->second;
  const WorkerState state = record_.bystanders[index].state;
  bystander_at_.erase(it);
  if (index + 1 != record_.bystanders.size()) {
    record_.bystanders[index] = std::move(record_.bystanders.back());
    bystander_at_[record_.bystanders[index].worker] = index;
  }
  record_.bystanders.pop_back();
  return state;
}

CaptureObstacle CaptureSession::BlockingReason(const NonParticipant& bystander) const {
  const auto state = states_.find(bystander.worker);
  if (state != states_.end() && IsObstacle(state->second)) return ObstacleOf(state->second);
  // Its agent has no part, as it would record what is to be held or counted alone.
  const bool is_of_newer =
      record_.spec.mode != CaptureMode::kStream && record_.spec.mode != CaptureMode::kContinuous;
  const bool has_part = presence_.contains(bystander.agent_id);
  return is_of_newer && !has_part ? CaptureObstacle::kNotArmed : CaptureObstacle::kNone;
}

void CaptureSession::AddParticipant(const NonParticipant& bystander, CaptureWorkerState state,
                                    CaptureObstacle obstacle, std::string detail) {
  CaptureWorkerStatus status{.capture_id = record_.id,
                             .worker = bystander.worker,
                             .state = state,
                             .detail = detail.empty() ? DetailOf(obstacle) : std::move(detail),
                             .obstacle = obstacle};
  status.worker_state = RemoveBystander(status.worker);
  AddWorker(std::move(status));
}

bool CaptureSession::NoteWorker(const std::string& agent_id, const WorkerInfo& worker) {
  const bool is_arming = record_.state == CaptureState::kArming;
  if (!is_arming && record_.state != CaptureState::kRecording) return false;
  if (CaptureWorkerStatus* const status = FindWorker(worker.identity)) {
    const WorkerState before = status->worker_state;
    status->worker_state = Obstacle(before, worker.state);
    return status->worker_state != before;
  }
  NonParticipant noted{.worker = worker.identity,
                       .agent_id = agent_id,
                       .reason = BystanderReason::kNotSelected,
                       .state = Obstacle(WorkerState::kUnspecified, worker.state),
                       .detail = WhyNotSelected(record_.spec, worker)};
  if (noted.detail.empty()) noted.reason = BystanderReason::kNotReported;
  states_[worker.identity] = worker.state;
  NonParticipant* const known = FindBystander(worker.identity);
  if (known != nullptr) {
    noted.state = Obstacle(known->state, worker.state);
    if (*known == noted) return false;
    *known = noted;
  } else {
    AddBystander(noted);
  }
  // Nobody will speak for it.
  const CaptureObstacle keeps = BlockingReason(noted);
  const bool is_mute = keeps == CaptureObstacle::kNoTap || keeps == CaptureObstacle::kNotArmed;
  if (is_mute && IsUnexplained(noted))
    AddParticipant(noted, CaptureWorkerState::kRefused, keeps, "");
  return true;
}

void CaptureSession::NoteAwayAgent(const KnownAgent& agent, const SessionTime& now) {
  const uint64_t away_ns = now.realtime_ns - std::min(now.realtime_ns, agent.last_seen_realtime_ns);
  const std::string detail = fmt::format("its agent {} disconnected {} s ago", agent.info.agent_id,
                                         away_ns / kNsPerSecond);
  const auto lose = [&](const WorkerIdentity& worker) {
    AddWorker({.capture_id = record_.id,
               .worker = worker,
               .state = CaptureWorkerState::kRefused,
               .detail = detail,
               .obstacle = CaptureObstacle::kAgentLost});
  };
  if (away_ns <= limits::kAgentLostForNs && !agent.last_workers.empty()) {
    for (const auto& [identity, worker] : agent.last_workers) {
      if (neurontrace::Selects(record_.spec, worker)) lose(identity);
    }
    return;
  }
  if (!record_.spec.instance_ids.empty()) {
    lose({.instance_id = agent.info.instance_id});
    return;
  }
  AddBystander({.worker = {.instance_id = agent.info.instance_id},
                .agent_id = agent.info.agent_id,
                .reason = BystanderReason::kAgentAway});
}

// Those that were away are spoken for again.
void CaptureSession::ForgetLost(std::string_view instance_id) {
  const size_t before = record_.workers.size();
  std::erase_if(record_.workers, [&](const CaptureWorkerStatus& status) {
    return status.obstacle == CaptureObstacle::kAgentLost &&
           status.state == CaptureWorkerState::kRefused && status.worker.instance_id == instance_id;
  });
  if (record_.workers.size() != before) IndexWorkers();
  for (CaptureWorkerStatus& status : record_.workers) {
    if (status.obstacle == CaptureObstacle::kAgentLost &&
        status.worker.instance_id == instance_id) {
      status.obstacle = CaptureObstacle::kNone;
    }
  }
}

bool CaptureSession::NoteWorkerGone(const WorkerIdentity& worker) {
  if (ended()) return false;
  states_.erase(worker);
  CaptureWorkerStatus* const status = FindWorker(worker);
  if (status != nullptr && status->state == CaptureWorkerState::kStarting &&
      status->obstacle == CaptureObstacle::kNoAnswer) {
    status->state = CaptureWorkerState::kRefused;
    status->obstacle = CaptureObstacle::kEnded;
    status->detail = "it ended before it said that it was armed";
    return true;
  }
  NonParticipant* const bystander = FindBystander(worker);
  if (bystander == nullptr || !IsUnexplained(*bystander)) return false;
  bystander->detail = "it ended before it was asked to record";
  return true;
}

void CaptureSession::TakeInUnreported() {
  const std::vector<NonParticipant> bystanders = record_.bystanders;
  for (const NonParticipant& bystander : bystanders) {
    if (!IsUnexplained(bystander)) continue;
    if (const CaptureObstacle obstacle = BlockingReason(bystander);
        obstacle != CaptureObstacle::kNone) {
      AddParticipant(bystander, CaptureWorkerState::kRefused, obstacle, "");
      continue;
    }
    const auto agent = agent_of_.find(bystander.worker.instance_id);
    if (agent == agent_of_.end() || !FindPart(agent->second)->finished) continue;
    AddParticipant(bystander, CaptureWorkerState::kLost, CaptureObstacle::kAgentLost,
                   "its agent was asked to record it, and its successor knows nothing of it");
  }
}

}  // namespace neurontrace
