// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/capture_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "aggregator/session/capture_end.h"
#include "aggregator/session/execution_stop_policy.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/capture_selection.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The coordinator ticks every 20 ms while a capture records, and agents need the order to stop
// before its moment.
constexpr uint64_t kStopLeadMinNs = 60'000'000;

// Returns whether the agent was asked to arm this worker and has not answered for it.
bool IsUnanswered(const CaptureWorkerStatus& status) {
  return status.state == CaptureWorkerState::kStarting ||
         status.state == CaptureWorkerState::kUnspecified;
}

// Copies a worker's beginning from its earlier status. An agent that has returned does not know
// when a worker began that it found recording, nor what that worker executed before.
void KeepBeginning(const CaptureWorkerStatus& before, CaptureWorkerStatus& status) {
  if (before.begun_realtime_ns != 0) {
    status.begun_realtime_ns = before.begun_realtime_ns;
    status.begin_offset_ns = before.begin_offset_ns;
    status.begun_as_planned = before.begun_as_planned;
    status.joined_late = before.joined_late;
  }
  // Each extreme of the cores is kept by itself, so that no core hides another.
  status.highest_first_execution =
      std::max(status.highest_first_execution, before.highest_first_execution);
  if (status.lowest_newest_execution == 0) {
    status.lowest_newest_execution = before.lowest_newest_execution;
  }
  if (before.first_execution == 0) return;
  if (status.first_execution == 0) {
    status.first_execution = before.first_execution;
    status.newest_execution = std::max(status.newest_execution, before.newest_execution);
    status.cores_without_execution = before.cores_without_execution;
  } else {
    status.first_execution = std::min(status.first_execution, before.first_execution);
  }
}

// Returns the record of an earlier run of the aggregator. Answers from before its absence are
// removed if it was arming, and all agents answer again.
CaptureRecord WithoutAnswers(CaptureRecord record) {
  if (record.state != CaptureState::kArming) return record;
  record.workers.clear();
  for (CaptureAgentPart& part : record.agents) part.reported = false;
  return record;
}

// Adds without overflow: times and durations come from requests and may be close to the maximum.
uint64_t Plus(uint64_t ns, uint64_t more_ns) {
  return more_ns > UINT64_MAX - ns ? UINT64_MAX : ns + more_ns;
}

}  // namespace

// Agents are added by Join, workers by RecordWorker, both before the first order is sent.
CaptureSession::CaptureSession(const CaptureId& id, const CaptureSpec& spec,
                               const SessionTime& now) {
  roster_.record().id = id;
  roster_.record().spec = spec;
  roster_.record().state = CaptureState::kArming;
  roster_.record().started_realtime_ns = now.realtime_ns;
  arming_monotonic_ns_ = now.monotonic_ns;
  arm_due_monotonic_ns_ = now.monotonic_ns + limits::kArmPatienceNs;
}

CaptureSession::CaptureSession(CaptureRecord stored, const SessionTime& now)
    : roster_(WithoutAnswers(std::move(stored))) {
  if (record().state == CaptureState::kArming) {
    arming_monotonic_ns_ = now.monotonic_ns;
    arm_due_monotonic_ns_ = now.monotonic_ns + limits::kAgentReturnMaxNs;
    awaits_absent_ = true;
  }
  for (CaptureAgentPart& part : roster_.record().agents) {
    presence_[part.agent_id] = {.connected = false,
                                .changed_monotonic_ns = now.monotonic_ns,
                                .reported_monotonic_ns = now.monotonic_ns};
    if (part.away_since_realtime_ns == 0) part.away_since_realtime_ns = now.realtime_ns;
  }
  // The monotonic clock of an earlier run says nothing, so agents get their full time again.
  if (record().state == CaptureState::kStopping) stopped_monotonic_ns_ = now.monotonic_ns;
  if (record().state == CaptureState::kRecording) SetDue(now);
}

// The time while the aggregator was away counts: the reference timescale measures it, or the wall
// clock if no beginning was planned.
void CaptureSession::SetDue(const SessionTime& now) {
  uint64_t length_ns = record().spec.timing.duration_ns;
  const bool is_from_execution = CountsFromExecution();
  if (is_from_execution && !HasReachedExecutions(record())) return;
  if (record().spec.mode == CaptureMode::kPreview) length_ns = limits::kPreviewMeasureNs;
  const bool is_cut = record().spec.mode == CaptureMode::kSnapshot;
  // A snapshot is over at its beginning: it collects the past.
  if (length_ns == 0 && !is_cut) return;
  if (is_cut) length_ns = 0;
  // Both values are on the same timescale: reference time if the beginning was planned, otherwise
  // wall time.
  uint64_t then_ns = record().begin ? record().begin->reference_ns : record().started_realtime_ns;
  const uint64_t now_ns = record().begin ? now.reference_ns : now.realtime_ns;
  // When that execution ran is not stored, so after a restart the duration counts from the restart.
  if (is_from_execution) then_ns = now_ns;
  const uint64_t end_ns = Plus(then_ns, length_ns);
  stop_due_monotonic_ns_ = Plus(now.monotonic_ns, end_ns > now_ns ? end_ns - now_ns : 0);
  if (is_cut) return;
  stop_lead_ns_ = std::min(std::max(BeginLeadNs(SlowestAnswerNs(), 0), kStopLeadMinNs), length_ns);
}

// The duration then starts at an execution, whose time is not known when the capture begins.
bool CaptureSession::CountsFromExecution() const {
  return record().spec.conditions.by_execution() && record().spec.mode == CaptureMode::kStream &&
         !presence_.empty();
}

bool CaptureSession::Selects(const AgentInfo& agent) const {
  const auto& ids = record().spec.selection.instance_ids;
  return ids.empty() || std::find(ids.begin(), ids.end(), agent.instance_id) != ids.end();
}

// --- Parts ---------------------------------------------------------------------------------------

const CaptureSession::Presence* CaptureSession::PresenceOf(const WorkerIdentity& worker) const {
  const CaptureAgentPart* const part = roster_.PartOf(worker);
  if (part == nullptr) return nullptr;
  const auto it = presence_.find(part->agent_id);
  return it == presence_.end() ? nullptr : &it->second;
}

CaptureSession::Presence& CaptureSession::PresenceOf(std::string_view agent_id) {
  const auto it = presence_.find(agent_id);
  assert(it != presence_.end());
  return it->second;
}

// The part decides, not the connection: an agent that is away is awaited until it is given up.
bool CaptureSession::Awaits(std::string_view agent_id) const {
  const CaptureAgentPart* const part = roster_.FindPart(agent_id);
  return part != nullptr && !part->finished && !part->given_up;
}

bool CaptureSession::IsOpen() const {
  return ended() && std::any_of(record().agents.begin(), record().agents.end(),
                                [](const auto& part) { return !part.finished && !part.given_up; });
}

void CaptureSession::GiveUpOn(std::string_view agent_id) {
  if (CaptureAgentPart* const part = roster_.FindPart(agent_id)) part->given_up = !part->finished;
}

void CaptureSession::GiveUpOnAll() {
  for (CaptureAgentPart& part : roster_.record().agents) part.given_up = !part.finished;
}

bool CaptureSession::IsOverdue(const SessionTime& now) const {
  return ended() && now.realtime_ns >= record().ended_realtime_ns + limits::kLateAgentMaxNs;
}

std::vector<WorkerIdentity> CaptureSession::ActiveWorkers(std::string_view instance_id) const {
  std::vector<WorkerIdentity> workers;
  for (const CaptureWorkerStatus& status : record().workers) {
    if (status.framework || IsFinal(status.state)) continue;
    // A worker that has not begun has nothing to continue.
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
  CaptureAgentPart* part = roster_.FindPart(agent.agent_id);
  if (part == nullptr) {
    if (record().state != CaptureState::kRecording && record().state != CaptureState::kArming) {
      return false;
    }
    // RecordAwayAgent has listed an agent without known workers by its instance alone.
    roster_.RemoveNonParticipant({.instance_id = agent.instance_id});
    part = &roster_.AddPart(agent);
  }
  roster_.ForgetLost(agent.instance_id);
  part->away_since_realtime_ns = 0;
  presence_[agent.agent_id] = {.connected = true,
                               .changed_monotonic_ns = now.monotonic_ns,
                               .reported_monotonic_ns = now.monotonic_ns};
  return Awaits(agent.agent_id);
}

bool CaptureSession::Leave(std::string_view agent_id, const SessionTime& now) {
  CaptureAgentPart* const part = roster_.FindPart(agent_id);
  if (part == nullptr) return false;
  Presence& presence = PresenceOf(agent_id);
  presence.connected = false;
  presence.changed_monotonic_ns = now.monotonic_ns;
  part->away_since_realtime_ns = now.realtime_ns;
  // Undone by CaptureRoster::ForgetLost if the agent returns.
  for (CaptureWorkerStatus& status : roster_.record().workers) {
    // A finished part has delivered everything, and nothing is lost with its agent.
    if (part->finished || status.worker.instance_id != part->instance_id) continue;
    if (!IsFinal(status.state) && status.obstacle == CaptureObstacle::kNone) {
      status.obstacle = CaptureObstacle::kAgentLost;
    }
  }
  return true;
}

// --- Workers -------------------------------------------------------------------------------------

bool CaptureSession::OnWorkerStatus(std::string_view agent_id, const CaptureWorkerStatus& status,
                                    const SessionTime& now) {
  const CaptureAgentPart* const part = roster_.FindPart(agent_id);
  if (part == nullptr || status.worker.instance_id != part->instance_id) return false;
  if (ended() && !Awaits(agent_id)) return false;
  PresenceOf(agent_id).reported_monotonic_ns = now.monotonic_ns;
  // An agent reports each worker many times, mostly to update its counters.
  CaptureWorkerStatus* const known = roster_.FindWorker(status.worker, status.framework);
  // The first report of a worker makes it a participant.
  if (known == nullptr) {
    CaptureWorkerStatus* const added = roster_.AddWorker(status);
    if (added == nullptr) return false;
    added->worker_state = WorkerState::kUnspecified;
    if (!status.framework) {
      added->worker_state =
          MergeObstacle(roster_.RemoveNonParticipant(status.worker), status.worker_state);
    }
    RecordExecution(status, now);
    return true;
  }
  const bool is_news = known->state != status.state || known->detail != status.detail ||
                       known->obstacle != status.obstacle;
  const WorkerState worker_state = MergeObstacle(known->worker_state, status.worker_state);
  // The new status replaces the old one as a whole, except for what only the earlier one knows.
  const CaptureWorkerStatus before = std::exchange(*known, status);
  known->worker_state = worker_state;
  KeepBeginning(before, *known);
  RecordExecution(status, now);
  return is_news;
}

void CaptureSession::RecordExecution(const CaptureWorkerStatus& status, const SessionTime& now) {
  const bool is_first = status.first_execution != 0 && stop_due_monotonic_ns_ == 0;
  if (is_first && record().state == CaptureState::kRecording && CountsFromExecution()) SetDue(now);
}

bool CaptureSession::OnAgentStatus(std::string_view agent_id, uint32_t matched_workers,
                                   bool finished, const SessionTime& now) {
  CaptureAgentPart* const part = roster_.FindPart(agent_id);
  if (part == nullptr || (ended() && !Awaits(agent_id))) return false;
  Presence& presence = PresenceOf(agent_id);
  presence.reported_monotonic_ns = now.monotonic_ns;
  // The first report of an agent is its answer to the order to arm.
  if (presence.answered_monotonic_ns == 0) presence.answered_monotonic_ns = now.monotonic_ns;
  const CaptureAgentPart before = *part;
  part->reported = true;
  part->matched_workers = std::max(part->matched_workers, matched_workers);
  // An agent finishes only after it was told to stop, except that a snapshot ends by itself. An
  // earlier report is wrong and must not end its part.
  const bool can_finish =
      record().state == CaptureState::kStopping || ended() ||
      (record().state == CaptureState::kRecording && record().spec.mode == CaptureMode::kSnapshot);
  part->finished = part->finished || (finished && can_finish);
  return *part != before;
}

// --- Arming --------------------------------------------------------------------------------------

// Waits for three kinds of answers: of agents, of workers that agents have reported, and of workers
// in the inventory that no agent has reported yet. Agents that disconnect are not waited for,
// except after a restart.
bool CaptureSession::IsEndCheckDue(const SessionTime& now) const {
  if (record().state != CaptureState::kArming) return false;
  if (now.monotonic_ns >= arm_due_monotonic_ns_) return true;
  if (!awaited_.empty()) return false;
  for (const auto& [agent_id, presence] : presence_) {
    if (!presence.connected) {
      if (awaits_absent_) return false;
    } else if (presence.answered_monotonic_ns == 0) {
      return false;
    }
  }
  // An agent may answer before all of its taps have.
  const auto is_awaited = [&](const WorkerIdentity& worker) {
    const Presence* const presence = PresenceOf(worker);
    return presence != nullptr && presence->connected;
  };
  for (const CaptureWorkerStatus& status : record().workers) {
    if (IsUnanswered(status) && !status.framework && is_awaited(status.worker)) return false;
  }
  return std::none_of(record().non_participants.begin(), record().non_participants.end(),
                      [&](const NonParticipant& non_participant) {
                        return IsUnexplained(non_participant) &&
                               is_awaited(non_participant.worker) &&
                               roster_.BlockingReason(non_participant) == CaptureObstacle::kNone;
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

// Afterwards every selected worker has a status, which Tally requires. Works on a copy of the
// session in all callers, since the decision may turn out not to be storable.
ArmingTally CaptureSession::Judge() {
  for (CaptureWorkerStatus& status : roster_.record().workers) {
    if (status.framework || !IsUnanswered(status) || status.obstacle != CaptureObstacle::kNone) {
      continue;
    }
    const Presence* const presence = PresenceOf(status.worker);
    if (presence == nullptr) continue;
    status.obstacle =
        presence->connected ? CaptureObstacle::kNoAnswer : CaptureObstacle::kAgentLost;
    if (status.detail.empty()) status.detail = "it did not report in time that it is armed";
  }
  // A copy: AddParticipant removes from the original.
  const std::vector<NonParticipant> non_participants = record().non_participants;
  for (const NonParticipant& non_participant : non_participants) {
    if (!IsUnexplained(non_participant)) continue;
    const Presence* const presence = PresenceOf(non_participant.worker);
    if (const CaptureObstacle obstacle = roster_.BlockingReason(non_participant);
        obstacle != CaptureObstacle::kNone) {
      roster_.AddParticipant(non_participant, CaptureWorkerState::kRefused, obstacle, "");
    } else if (presence == nullptr || !presence->connected) {
      roster_.AddParticipant(non_participant, CaptureWorkerState::kStarting,
                             CaptureObstacle::kAgentLost, "its agent disconnected");
    } else {
      roster_.AddParticipant(non_participant, CaptureWorkerState::kStarting,
                             CaptureObstacle::kNoAnswer,
                             "it did not report in time that it is armed");
    }
  }
  return Tally(record());
}

void CaptureSession::Begin(const CaptureBegin& begin, const SessionTime& now) {
  assert(record().state == CaptureState::kArming);
  roster_.record().begin = begin;
  roster_.record().begin->host_raw_ns = 0;  // differs from host to host
  roster_.record().state = CaptureState::kRecording;
  roster_.record().armed_realtime_ns = now.realtime_ns;
  SetDue(now);
}

void CaptureSession::NotBegin(const SessionTime& now, std::string why) {
  assert(record().state == CaptureState::kArming);
  roster_.record().state = CaptureState::kNotBegun;
  roster_.record().armed_realtime_ns = roster_.record().ended_realtime_ns = now.realtime_ns;
  // No agent has anything to deliver, so the capture does not stay open.
  for (CaptureAgentPart& part : roster_.record().agents) part.finished = true;
  roster_.record().end_warnings.clear();
  roster_.WarnAtEnd(std::move(why));
}

void CaptureSession::SetExecutions(uint64_t first, uint64_t last) {
  if (!record().begin) return;
  roster_.record().begin->first_execution = first;
  roster_.record().begin->last_execution = last;
}

// --- Stopping and ending -------------------------------------------------------------------------

// `in_ns` is 0 for a stop by command. Agents then stop when they get the order, at slightly
// different moments.
void CaptureSession::Stop(const SessionTime& now, uint64_t in_ns) {
  if (record().state != CaptureState::kRecording) return;
  roster_.record().state = CaptureState::kStopping;
  roster_.record().stopped_realtime_ns = now.realtime_ns + in_ns;
  stopped_monotonic_ns_ = now.monotonic_ns + in_ns;
}

bool CaptureSession::IsStopDue(const SessionTime& now) const {
  return record().state == CaptureState::kRecording && stop_due_monotonic_ns_ != 0 &&
         now.monotonic_ns >=
             stop_due_monotonic_ns_ - std::min(stop_due_monotonic_ns_, stop_lead_ns_);
}

uint64_t CaptureSession::StopInNs(const SessionTime& now) const {
  return stop_due_monotonic_ns_ > now.monotonic_ns ? stop_due_monotonic_ns_ - now.monotonic_ns : 0;
}

bool CaptureSession::IsGivenUp(const CaptureAgentPart& part, const SessionTime& now) const {
  const auto it = presence_.find(part.agent_id);
  // A connected agent may be silent for longer than a disconnected one may take to return. Both
  // times count from the last sign of life or from the stop, whichever is later.
  if (it == presence_.end()) return true;
  const Presence& presence = it->second;
  const uint64_t since = presence.connected
                             ? std::max(presence.reported_monotonic_ns, stopped_monotonic_ns_)
                             : std::max(presence.changed_monotonic_ns, stopped_monotonic_ns_);
  const uint64_t patience_ns =
      presence.connected ? limits::kAgentSilenceMaxNs : limits::kAgentReturnMaxNs;
  return now.monotonic_ns >= since + patience_ns;
}

bool CaptureSession::IsEndDue(const SessionTime& now) const {
  return record().state == CaptureState::kStopping &&
         std::all_of(record().agents.begin(), record().agents.end(),
                     [&](const auto& part) { return part.finished || IsGivenUp(part, now); });
}

// Called again whenever a late agent has delivered more. Then it may turn incomplete into complete.
void CaptureSession::End(const SessionTime& now, std::string_view inventory) {
  std::set<std::string, std::less<>> connected_agents;
  for (const auto& [agent_id, presence] : presence_) {
    if (presence.connected) connected_agents.insert(agent_id);
  }
  const bool is_complete = CheckEnd(connected_agents, inventory, roster_);
  // The first end decides how long the capture stays open for late agents.
  if (!ended()) roster_.record().ended_realtime_ns = now.realtime_ns;
  roster_.record().state = is_complete ? CaptureState::kComplete : CaptureState::kIncomplete;
}

// --- The workers that exist ----------------------------------------------------------------------

bool CaptureSession::RecordWorker(const std::string& agent_id, const WorkerInfo& worker) {
  const bool is_arming = record().state == CaptureState::kArming;
  if (!is_arming && record().state != CaptureState::kRecording) return false;
  if (CaptureWorkerStatus* const status = roster_.FindWorker(worker.identity)) {
    const WorkerState before = status->worker_state;
    status->worker_state = MergeObstacle(before, worker.state);
    return status->worker_state != before;
  }
  NonParticipant noted{.worker = worker.identity,
                       .agent_id = agent_id,
                       .reason = NonParticipantReason::kNotSelected,
                       .state = MergeObstacle(WorkerState::kUnspecified, worker.state),
                       .detail = NotSelectedReason(record().spec, worker)};
  if (noted.detail.empty()) noted.reason = NonParticipantReason::kNotReported;
  roster_.SetState(worker.identity, worker.state);
  NonParticipant* const known = roster_.FindNonParticipant(worker.identity);
  if (known != nullptr) {
    noted.state = MergeObstacle(known->state, worker.state);
    if (*known == noted) return false;
    *known = noted;
  } else {
    roster_.AddNonParticipant(noted);
  }
  // No agent will report a worker with one of these obstacles, so nothing is gained by waiting for
  // it.
  const CaptureObstacle obstacle = roster_.BlockingReason(noted);
  const bool is_mute =
      obstacle == CaptureObstacle::kNoTap || obstacle == CaptureObstacle::kNotArmed;
  if (is_mute && IsUnexplained(noted)) {
    roster_.AddParticipant(noted, CaptureWorkerState::kRefused, obstacle, "");
  }
  return true;
}

void CaptureSession::RecordAwayAgent(const KnownAgent& agent, const SessionTime& now) {
  const uint64_t away_ns = now.realtime_ns - std::min(now.realtime_ns, agent.last_seen_realtime_ns);
  const std::string detail = fmt::format("its agent {} disconnected {} s ago", agent.info.agent_id,
                                         away_ns / kNsPerSecond);
  const auto lose = [&](const WorkerIdentity& worker) {
    roster_.AddWorker({.capture_id = record().id,
                       .worker = worker,
                       .state = CaptureWorkerState::kRefused,
                       .detail = detail,
                       .obstacle = CaptureObstacle::kAgentLost});
  };
  // Its workers probably still run, and those that are selected will be missed.
  if (away_ns <= limits::kAgentLostForNs && !agent.last_workers.empty()) {
    for (const auto& [identity, worker] : agent.last_workers) {
      if (neurontrace::Selects(record().spec, worker)) lose(identity);
    }
    return;
  }
  // The instance was selected by name, so whoever asked for it expects it to be there.
  if (!record().spec.selection.instance_ids.empty()) {
    lose({.instance_id = agent.info.instance_id});
    return;
  }
  roster_.AddNonParticipant({.worker = {.instance_id = agent.info.instance_id},
                             .agent_id = agent.info.agent_id,
                             .reason = NonParticipantReason::kAgentAway});
}

bool CaptureSession::RecordWorkerGone(const WorkerIdentity& worker) {
  if (ended()) return false;
  roster_.ForgetState(worker);
  CaptureWorkerStatus* const status = roster_.FindWorker(worker);
  if (status != nullptr && status->state == CaptureWorkerState::kStarting &&
      status->obstacle == CaptureObstacle::kNoAnswer) {
    status->state = CaptureWorkerState::kRefused;
    status->obstacle = CaptureObstacle::kEnded;
    status->detail = "it ended before it reported that it was armed";
    return true;
  }
  NonParticipant* const non_participant = roster_.FindNonParticipant(worker);
  if (non_participant == nullptr || !IsUnexplained(*non_participant)) return false;
  non_participant->detail = "it ended before it was asked to record";
  return true;
}

}  // namespace neurontrace
