// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/worker_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "agent/source/neuron/capture/held_rings.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Pause between attempts to start, while another capture or the runtime prevents it.
constexpr uint64_t kRestartNs = 1'000'000'000;

// Returns the event of the table for the tap's answer to START. Any other result counts as a
// refusal.
WorkerEvent EventOf(TapResult start_result) {
  switch (start_result) {
    case TapResult::kOk:
      return WorkerEvent::kAnswerRecording;
    case TapResult::kAccepted:
      return WorkerEvent::kAnswerWaiting;
    case TapResult::kAnotherCapture:
      return WorkerEvent::kAnswerOtherCapture;
    case TapResult::kUnsupported:
      return WorkerEvent::kAnswerUnsupported;
    default:
      return WorkerEvent::kAnswerRefused;
  }
}

}  // namespace

WorkerCapture::WorkerCapture(const StreamSetup& capture_context, SourceListener& listener,
                             const CapturePlan& plan, const WorkerIdentity& worker)
    : capture_context_(capture_context),
      listener_(listener),
      plan_(plan),
      worker_(worker),
      streams_(std::make_unique<CaptureStreams>(
          capture_context, plan.id, worker,
          EventSelection{plan.filter, plan.spec.selection.neuron_cores,
                         plan.spec.conditions.by_execution(), plan.spec.selection.worker_gids,
                         is_snapshot()})) {
  if (WorkerFidelity::IsFor(plan_.spec)) fidelity_.emplace(plan_);
}

// The only place that changes phase_. A pair without a row in the table leaves the phase as it is
// and gives kNone.
WorkerAction WorkerCapture::Apply(WorkerEvent event) {
  const WorkerTransition transition = FindTransition(phase_, event);
  assert(transition.from == phase_ && transition.event == event);
  phase_ = transition.to;
  return transition.action;
}

uint64_t WorkerCapture::ring_events() const { return RingEventsPerCore(plan_.spec); }

void WorkerCapture::Enter(CaptureWorkerState state, std::string detail, CaptureObstacle obstacle) {
  if (detail.size() > limits::kDetailBytesMax) detail.resize(limits::kDetailBytesMax);
  if (state == CaptureWorkerState::kRefused && beginning_.moment) beginning_.kept_off_since = true;
  if (state == state_ && detail == detail_ && obstacle == obstacle_) return;
  state_ = state;
  detail_ = std::move(detail);
  obstacle_ = obstacle;
  ReportCounts();
}

CaptureWorkerStatus WorkerCapture::MakeStatus() const {
  const StreamWriter::Counts counts = streams_->counts();
  const ExecutionProgress executions = streams_->executions();
  const bool is_preview = plan_.spec.mode == CaptureMode::kPreview;
  CaptureWorkerStatus status{.capture_id = plan_.id,
                             .worker = worker_,
                             .state = state_,
                             .detail = detail_,
                             .events_read = counts.read,
                             .events_stored = is_preview ? 0 : counts.stored,
                             .events_lost = counts.lost,
                             .events_lost_unknown = counts.lost_unknown,
                             .framework = false,
                             .streams = streams_->stream_count(),
                             .obstacle = obstacle_,
                             .bytes_read = counts.bytes,
                             .first_execution = executions.first,
                             .highest_first_execution = executions.highest_first,
                             .lowest_newest_execution = executions.lowest_newest,
                             .newest_execution = executions.newest,
                             .cores_without_execution = executions.cores_without,
                             .reaches_back_ns = streams_->reaches_back_ns()};
  beginning_.FillIn(status);
  return status;
}

void WorkerCapture::Beginning::FillIn(CaptureWorkerStatus& status) const {
  status.begun_realtime_ns = realtime_ns;
  if (realtime_ns == 0 || !moment) return;
  const auto offset_ns = static_cast<int64_t>(realtime_ns - moment->realtime_ns);
  status.joined_late = late || (kept_off_since && offset_ns > 0);
  status.begun_as_planned = moment->named && !status.joined_late;
  if (status.begun_as_planned) status.begin_offset_ns = offset_ns;
}

// Nothing is reported before the first state, and no status twice in a row.
void WorkerCapture::ReportCounts() {
  if (state_ == CaptureWorkerState::kUnspecified) return;
  CaptureWorkerStatus status = MakeStatus();
  if (reported_ == status) return;
  reported_ = std::move(status);
  listener_.OnCaptureWorker(*reported_);
}

void WorkerCapture::Resume(const std::vector<StreamCursor>& cursors) {
  // What this agent has read itself is better evidence than cursors.
  const bool knows_better = streams_->stream_count() > 0;  // by having read it
  streams_->Resume(cursors);
  const bool will_continue = std::any_of(cursors.begin(), cursors.end(), [&](const auto& cursor) {
    return cursor.stream.worker == worker_ && cursor.next_sequence > 0 && !cursor.ended;
  });
  if (!will_continue || knows_better) return;
  Mark(TraceSign::kRuns);
  beginning_.was_unseen = true;
}

void WorkerCapture::OnDocument() {
  if (!ended()) Mark(TraceSign::kRuns);
}

void WorkerCapture::OnTraceStarted(const TapRecord& record, const WorkerFacts& facts) {
  if (ended()) return;
  // First, as the note and the suspension below are recorded at this position.
  streams_->BeginTrace(record);
  restart_stops_ = 0;
  if (fidelity_) {
    if (std::optional<FidelityNote> note = fidelity_->OnTraceStarted(record, facts)) {
      streams_->SetFidelity(*std::move(note));
      streams_->Flush(record.next_position);
    }
  }
  if (is_continuous()) {
    if (const auto suspension = suspensions_.TraceStarted(record.host_realtime_ns)) {
      streams_->AddSuspension(record.position, *suspension);
    }
  }
  Mark(TraceSign::kRuns);
  // Records of a trace that was resumed, or renewed by an agent, are not the beginning of the
  // capture.
  const bool is_beginning = !beginning_.was_unseen && (record.flags & kTapRecordFlagResumed) == 0;
  if (beginning_.realtime_ns == 0 && is_beginning) {
    beginning_.realtime_ns = record.host_realtime_ns;
  }
  if (Apply(WorkerEvent::kTraceSeen) == WorkerAction::kReportRecording) {
    Enter(CaptureWorkerState::kRecording, "");
  }
  ReportCounts();
}

void WorkerCapture::OnTraceStopped(const TapRecord& record) {
  if (ended()) return;
  // A record that is too short gives no reason for the stop and is ignored.
  TapTraceStopped stopped = {};
  if (record.payload_bytes < sizeof stopped) return;
  std::memcpy(&stopped, record.payload, sizeof stopped);
  Mark(TraceSign::kStops);
  streams_->EndTrace(record);
  if (fidelity_) fidelity_->OnTraceStopped(record);
  if (stopped.final_drain_complete == 0 && streams_->AnyPassing()) {
    streams_->AddLoss(record.position, {.place = LossPlace::kRuntimeRing,
                                        .reason = LossReason::kUnknown,
                                        .events_unknown = true,
                                        .first_timestamp_ns = record.host_realtime_ns,
                                        .last_timestamp_ns = record.host_realtime_ns,
                                        .detail = "the final drain of the rings was incomplete"});
  }
  const auto reason = static_cast<TapStopReason>(stopped.reason);
  if (reason == TapStopReason::kCommand && restart_stops_ > 0) {
    --restart_stops_;
    return;
  }
  // With a budget, a trace of an agent before this one may have been renewed there.
  if (is_continuous() && reason == TapStopReason::kCommand && !IsStopping(phase_) &&
      (suspended() || !fidelity_)) {
    streams_->AddSuspension(record.position, suspensions_.TraceStopped(record.host_realtime_ns));
  }
  // Everything of the capture precedes this record, as the tap drains before it writes it.
  const bool is_end = is_snapshot() || (IsStopping(phase_) && reason == TapStopReason::kCommand);
  if (is_end && !end_position_) end_position_ = record.next_position;
  if (!is_snapshot() && IsActive(phase_)) Enter(state_, DescribeStop(reason));
}

// Ends at the position if that is reached, or when patience is over; reports the end once every
// chunk is delivered.
void WorkerCapture::Tick(uint64_t position, bool drained) {
  if (!ended() && end_position_ && position >= *end_position_) {
    EndAtStop(position);
  } else if (!ended() && deadline_ns_ != 0) {
    EndIfUnanswered(position, drained);
  }
  if (!ended()) {
    AddSuspensions(position, false);
    streams_->Tick(position);
  } else if (finished() && state_ == CaptureWorkerState::kStopping) {
    if (streams_->counts().given_up) {
      Enter(CaptureWorkerState::kLost,
            "a stream was abandoned before the aggregator stored all of it; see the agent's log");
    } else {
      Enter(CaptureWorkerState::kComplete, detail_);
    }
  }
}

void WorkerCapture::EndIfUnanswered(uint64_t position, bool drained) {
  const uint64_t patience_ns = is_snapshot() ? kCollectPatienceNs : kStopPatienceNs;
  // While there is something to read, the end of the trace may still be in it.
  if (!drained) deadline_ns_ = std::max(deadline_ns_, NowNs() + patience_ns);
  if (NowNs() < deadline_ns_) return;
  if (has_recorded()) {
    streams_->AddLoss(position, {.place = LossPlace::kTapBuffer,
                                 .reason = LossReason::kUnknown,
                                 .events_unknown = true,
                                 .detail = is_snapshot() ? "the tap did not answer COLLECT"
                                                         : "the tap did not answer STOP"});
  }
  EndAtStop(position);
}

// Because of the tap's answer, or because there was none for too long.
void WorkerCapture::EndAtStop(uint64_t position) {
  // A tap that has collected may have found nothing. A capture that was to begin and left no trace
  // is reported as refused, with what is known of the reason.
  const bool was_to_begin = IsCut(phase_) ? !end_position_ : stop_.was_to_begin;
  const bool had_order = HasOrder(IsCut(phase_) ? phase_ : stop_.phase_before);
  if (was_to_begin && !has_part()) {
    Enter(CaptureWorkerState::kRefused,
          !had_order      ? "the tap was not connected when the capture began"
          : is_snapshot() ? "the tap did not answer COLLECT"
                          : "the tap did not confirm START",
          CaptureObstacle::kNoAnswer);
  }
  End(position);
}

void WorkerCapture::AddSuspensions(uint64_t position, bool is_last) {
  if (!is_continuous()) return;
  const uint64_t now_ns = capture_context_.clock.RealtimeNs();
  for (const Suspension& suspension : suspensions_.TakeDue(now_ns, is_last)) {
    streams_->AddSuspension(position, suspension);
  }
}

void WorkerCapture::End(uint64_t position) {
  if (ended()) return;
  AddSuspensions(position, true);
  if (Apply(WorkerEvent::kEnd) == WorkerAction::kEndStreams) streams_->End(position);
  // Nobody stops a snapshot.
  if (is_snapshot() &&
      (state_ == CaptureWorkerState::kRecording || state_ == CaptureWorkerState::kStarting ||
       state_ == CaptureWorkerState::kArmed)) {
    Enter(CaptureWorkerState::kStopping, detail_);
  }
}

// A worker that exits in an orderly way has had its rings drained; one that dies leaves an unknown
// number of events there.
void WorkerCapture::EndWithWorker(uint64_t position, bool sent_goodbye) {
  if (ended()) return;
  const bool is_cut_short = is_tracing() && !sent_goodbye;
  const bool was_ruled_out = is_ruled_out();
  if (is_cut_short) {
    streams_->AddLoss(position, {.place = LossPlace::kRuntimeRing,
                                 .reason = LossReason::kUnknown,
                                 .events_unknown = true,
                                 .detail = "the worker died before its rings were fetched"});
  }
  End(position);
  if (!has_recorded() && was_ruled_out && state_ == CaptureWorkerState::kRefused) {
    // It stays refused for the reason that no START could be made.
  } else if (!has_recorded()) {
    Enter(CaptureWorkerState::kRefused, "the worker ended before anything was recorded",
          CaptureObstacle::kEnded);
  } else if (is_cut_short) {
    Enter(CaptureWorkerState::kLost, "the worker died; the data delivered before is kept");
  } else {
    Enter(CaptureWorkerState::kStopping, "the worker ended");
  }
}

// Nothing more can be read, so an unknown number of events is lost with the ring.
void WorkerCapture::EndBecauseBroken(uint64_t position, const std::string& why) {
  if (ended()) return;
  streams_->AddLoss(position, {.place = LossPlace::kTapBuffer,
                               .reason = LossReason::kMalformed,
                               .events_unknown = true,
                               .detail = why});
  End(position);
  Enter(CaptureWorkerState::kLost, why);
}

// --- The tap: its orders and its answers ---------------------------------------------------------

// The state becomes "starting" only if none was reported before.
void WorkerCapture::Confirm() {
  if (!confirmed_ns_) confirmed_ns_ = NowNs();
  if (state_ == CaptureWorkerState::kUnspecified) Enter(CaptureWorkerState::kStarting, "");
}

void WorkerCapture::OnRunning() {
  if (IsStopping(phase_) || ended()) return;
  Mark(TraceSign::kRuns);
  if (Apply(WorkerEvent::kTraceSeen) == WorkerAction::kReportRecording) {
    Enter(CaptureWorkerState::kRecording, "");
  }
}

// --- Before it begins ----------------------------------------------------------------------------

CaptureObstacle WorkerCapture::FindObstacle(const TapView& tap, std::string& detail) const {
  if (tap.session == nullptr) {
    detail = "the tap is not connected";
    return CaptureObstacle::kNoAnswer;
  }
  const CaptureObstacle by_state = ObstacleOf(tap.state);
  if (by_state != CaptureObstacle::kNone) {
    detail = DescribeForCapture(tap.state, 0, tap.facts.detail);
    return by_state;
  }
  if (is_snapshot()) {
    if (tap.state == TapState::kHolding && tap.running == plan_.spec.timing.flight_recorder) {
      return CaptureObstacle::kNone;
    }
    detail = "the flight recorder does not hold the rings of this worker";
    return CaptureObstacle::kNotArmed;
  }
  // It would have to be suspended, or this one waits for it as a standing one does.
  const CaptureMode mode = plan_.spec.mode;
  if (tap.running_mode && tap.running != plan_.id &&
      (IsStanding(mode) ? Precedence(*tap.running_mode) == Precedence(mode)
                        : Precedence(*tap.running_mode) >= Precedence(mode))) {
    detail = fmt::format("capture {} is already running on this worker", tap.running.ToString());
    return CaptureObstacle::kOtherCapture;
  }
  const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  if (order.ok()) return CaptureObstacle::kNone;
  detail = std::string(order.status().message());
  return CaptureObstacle::kNoEventType;
}

// A capture that has recorded, or is past arming, is not armed again.
void WorkerCapture::Arm(const TapView& tap) {
  if (has_recorded() || Apply(WorkerEvent::kArm) != WorkerAction::kCheckObstacles) return;
  std::string detail;
  const CaptureObstacle obstacle = FindObstacle(tap, detail);
  Enter(obstacle == CaptureObstacle::kNone ? CaptureWorkerState::kArmed
                                           : CaptureWorkerState::kRefused,
        std::move(detail), obstacle);
}

void WorkerCapture::Begin(const PlannedMoment& moment, bool late, HeldRings& rings) {
  const WorkerAction action =
      Apply(is_snapshot() ? WorkerEvent::kBeginSnapshot : WorkerEvent::kBegin);
  if (action == WorkerAction::kNone) return;
  // A capture that has already recorded did not begin late.
  beginning_.late = late && !has_recorded() && (!moment.named || NowNs() > moment.monotonic_ns);
  beginning_.moment = moment;
  if (action == WorkerAction::kPlanCut) {
    streams_->SetWindow(SnapshotWindow(rings, moment.realtime_ns, plan_.spec.timing.last_ns));
    deadline_ns_ = std::max(NowNs(), moment.monotonic_ns) + kCollectPatienceNs;
  }
}

// --- Commands ------------------------------------------------------------------------------------

bool WorkerCapture::WantsTap() const {
  return confirmed_ns_ &&
         (suspended() || phase_ == WorkerPhase::kReady || phase_ == WorkerPhase::kOrdered);
}

// Called after every change that may make a command due; the table decides whether one is.
void WorkerCapture::TryStart(const TapView& tap) {
  if (tap.session == nullptr || !confirmed_ns_) return;
  switch (Apply(WorkerEvent::kTurn)) {
    case WorkerAction::kSendStart:
      return SendStart(tap);
    case WorkerAction::kSendCollect:
      return SendCollect(tap);
    case WorkerAction::kSendStop:
      return Stop(tap.session, stop_.at_ns);
    default:
      return;
  }
}

void WorkerCapture::SendStart(const TapView& tap) {
  if (NowNs() < next_start_ns_) return;
  // Groups of event types cannot be resolved before the runtime has listed its types. The tap
  // reports a new state a moment before its new facts, and may be writing them.
  const bool types_come = tap.state == TapState::kNotInitialised || !tap.facts.runtime_known;
  if (types_come && tap.facts.event_types.empty() && !plan_.filter.selects_all()) {
    const TapState state = TapState::kNotInitialised;
    return EnterStored(DescribeForCapture(state, 0, tap.facts.detail), ObstacleOf(state));
  }
  // Also before a START that will be sent, as its answer may call for another attempt.
  next_start_ns_ = NowNs() + kRestartNs;
  absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  if (!order.ok()) {
    Apply(WorkerEvent::kStartImpossible);
    return EnterStored(std::string(order.status().message()), CaptureObstacle::kNoEventType);
  }
  Apply(WorkerEvent::kStartPossible);
  if (!is_due()) order->begin_at_monotonic_ns = beginning_.moment->monotonic_ns;
  if (tap.session->SendStart(*order).ok()) Apply(WorkerEvent::kStartSent);
}

void WorkerCapture::SendCollect(const TapView& tap) {
  if (end_position_) return;
  const uint64_t cut_ns = beginning_.moment->monotonic_ns;
  const uint64_t now_ns = NowNs();
  // Too late: the rings have moved on, unless an earlier COLLECT was in time.
  if (now_ns >= cut_ns && now_ns - cut_ns > kCutAgeMaxNs) {
    // What was collected in time may not have been read yet; nothing more is collected.
    if (!collected_before_) collected_before_ = tap.write_position;
    if (has_recorded() || tap.read_position < *collected_before_) return;
    return RefuseSnapshot(CaptureObstacle::kAgentLost, "the agent was unavailable at the cut");
  }
  if (plan_.spec.timing.flight_recorder.empty()) {
    return RefuseSnapshot(CaptureObstacle::kNotArmed, "the snapshot names no flight recorder");
  }
  if (state_ != CaptureWorkerState::kArmed) Enter(CaptureWorkerState::kStarting, "");
  if (tap.session->SendCollect(plan_.id, plan_.spec.timing.flight_recorder, cut_ns).ok()) {
    Apply(WorkerEvent::kCollectSent);
  }
}

// If something of it has been read, that stays as the end of what there is.
void WorkerCapture::RefuseSnapshot(CaptureObstacle obstacle, std::string detail) {
  if (ended() || has_recorded()) return;
  Enter(CaptureWorkerState::kRefused, std::move(detail), obstacle);
  End(0);
}

void WorkerCapture::Stop(TapSession* session, uint64_t stop_at_ns) {
  // A repeated stop keeps the time of the first one.
  const uint64_t stopped_ns = std::max(NowNs(), IsStopping(phase_) ? stop_.at_ns : stop_at_ns);
  const uint64_t deadline_ns = stopped_ns + kStopPatienceNs;
  const WorkerPhase phase_before = phase_;
  const WorkerAction action = Apply(WorkerEvent::kStop);
  if (action == WorkerAction::kNone) return;
  if (action == WorkerAction::kBeginStop) {
    stop_.phase_before = phase_before;
    stop_.at_ns = stop_at_ns;
    deadline_ns_ = deadline_ns;
    EnterStopping(stopped_ns);
  }
  if (session == nullptr) return;
  Apply(WorkerEvent::kStopSent);
  if (!session->SendStop(plan_.id, stop_.at_ns).ok()) {
    // The deadline ends the streams if the connection does not come back before.
    deadline_ns_ = deadline_ns;
  }
}

void WorkerCapture::EnterStopping(uint64_t stopped_ns) {
  if (state_ == CaptureWorkerState::kRefused) return;
  const bool was_suspended = IsSuspended(stop_.phase_before);
  const bool was_armed = state_ == CaptureWorkerState::kArmed;
  stop_.was_to_begin =
      beginning_.moment && !was_suspended && stopped_ns >= beginning_.moment->monotonic_ns;
  std::string detail = detail_;
  if (was_suspended) {
    detail = fmt::format("ended while it was suspended for capture {}", suspended_for_.ToString());
  } else if (was_armed && !stop_.was_to_begin) {
    detail = "stopped before it began";
  }
  Enter(CaptureWorkerState::kStopping, std::move(detail));
}

// Called again for as long as the other capture has the tap, so a STOP that could not be sent is
// sent then.
void WorkerCapture::Suspend(const TapView& tap, const CaptureId& other) {
  const WorkerAction action = Apply(WorkerEvent::kSuspend);
  if (action == WorkerAction::kNone) return;
  if (action == WorkerAction::kSuspend) {
    AgentSourceMetrics::Add(capture_context_.metrics.suspensions);
    (has_recorded() ? beginning_.was_unseen : beginning_.kept_off_since) = true;
  }
  suspended_for_ = other;
  suspensions_.Suspend(other, capture_context_.clock.RealtimeNs());
  // The tap may also have it from before the connection, or without its START having been sent.
  const bool owes_stop = phase_ == WorkerPhase::kSuspending ||
                         (phase_ == WorkerPhase::kSuspended && tap.running == plan_.id);
  if (owes_stop && tap.session != nullptr && tap.session->SendStop(plan_.id).ok()) {
    Apply(WorkerEvent::kSuspendStopSent);
  }
  Enter(CaptureWorkerState::kSuspended,
        fmt::format("suspended for capture {}; continues after it", other.ToString()),
        CaptureObstacle::kOtherCapture);
}

// The next START is sent without the pause of a failed one.
void WorkerCapture::EndSuspension() {
  if (Apply(WorkerEvent::kEndSuspension) != WorkerAction::kReportStarting) return;
  next_start_ns_ = 0;
  Enter(CaptureWorkerState::kStarting, "");
}

// What was sent over the old connection may be lost: answers to it are not awaited.
void WorkerCapture::Reconnect(const TapView& tap) {
  restart_answers_ = restart_stops_ = 0;
  if (fidelity_) fidelity_->OnReconnect();
  next_start_ns_ = 0;
  switch (Apply(WorkerEvent::kReconnect)) {
    case WorkerAction::kSendStop:
      return Stop(tap.session, stop_.at_ns);
    case WorkerAction::kCheckObstacles:
      return Arm(tap);
    default:
      return;
  }
}

// --- Budget --------------------------------------------------------------------------------------

std::optional<uint32_t> WorkerCapture::fidelity() const {
  if (!fidelity_) return std::nullopt;
  return fidelity_->reported_level();
}

void WorkerCapture::Govern(const TapView& tap, uint64_t core_ns) {
  if (!fidelity_ || !has_recorded() || !IsActive(phase_)) return;
  const bool is_reported = tap.session != nullptr && HasOrder(phase_) && tap.running == plan_.id;
  WorkerFidelity::Orders orders = fidelity_->Observe(
      {.now_ns = NowNs(),
       .realtime_ns = capture_context_.clock.RealtimeNs(),
       .totals = {core_ns, streams_->counts().bytes},
       .facts = tap.facts,
       // A core that is followed by its executions would have to be found again.
       .can_restart = is_reported && is_tracing() && !plan_.spec.conditions.by_execution()});
  if (orders.note) streams_->SetFidelity(*std::move(orders.note));
  if (orders.restart) RestartTrace(tap);
}

// The START follows the STOP immediately, so that hardly a moment passes between the two traces.
void WorkerCapture::RestartTrace(const TapView& tap) {
  const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  if (!order.ok() || !tap.session->SendStop(plan_.id).ok()) return;
  beginning_.was_unseen = true;
  ++restart_answers_;
  ++restart_stops_;
  if (!tap.session->SendStart(*order).ok()) Apply(WorkerEvent::kStartNotSent);
}

// --- Answers -------------------------------------------------------------------------------------

void WorkerCapture::EnterStored(std::string detail, CaptureObstacle obstacle) {
  if (has_recorded()) return Enter(CaptureWorkerState::kRecording, std::move(detail));
  Enter(CaptureWorkerState::kRefused, std::move(detail), obstacle);
}

void WorkerCapture::EnterStored(const TapReport& report) {
  const CaptureObstacle obstacle = ObstacleOf(report.state);
  EnterStored(DescribeForCapture(report.state, report.nrt_status, report.detail),
              obstacle == CaptureObstacle::kNone ? CaptureObstacle::kRuntimeRefused : obstacle);
}

// The answer may be read after the time has come, which is no obstacle.
void WorkerCapture::EnterWaiting(const TapReport& report) {
  if (has_recorded() || ObstacleOf(report.state) != CaptureObstacle::kNone)
    return EnterStored(report);
  Enter(is_due() ? CaptureWorkerState::kStarting : CaptureWorkerState::kArmed, "");
}

// A snapshot is never started, so answers to START do not concern it.
void WorkerCapture::OnStartAnswer(const TapReport& report) {
  if (is_snapshot()) return;
  switch (Apply(EventOf(report.result))) {
    case WorkerAction::kReportRecording:
      Mark(TraceSign::kRuns);
      return Enter(CaptureWorkerState::kRecording, "");
    case WorkerAction::kKeepRecorded:
      return Mark(TraceSign::kHasRun);
    case WorkerAction::kReportWaiting:
      return EnterWaiting(report);
    case WorkerAction::kRetryLater:
      next_start_ns_ = NowNs() + kRestartNs;
      return EnterStored(
          fmt::format("capture {} is already running on this worker", report.capture_id.ToString()),
          CaptureObstacle::kOtherCapture);
    case WorkerAction::kReportObstacle:
      if (report.result != TapResult::kUnsupported) return EnterStored(report);
      return EnterStored(DescribeForCapture(report.state, report.nrt_status, report.detail),
                         CaptureObstacle::kRuntimeTooOld);
    default:
      return;
  }
}

// Answers come in the order of the commands, so those of restarts come first.
void WorkerCapture::OnStopAnswer(uint64_t write_position) {
  if (restart_answers_ > 0) {
    --restart_answers_;
    return;
  }
  // The tap drains before it answers, so everything of this capture precedes this position.
  if (IsStopping(phase_) && !end_position_) end_position_ = write_position;
}

// Accepted means that the tap waits for the time of the cut; another answer follows.
void WorkerCapture::OnCollectAnswer(const TapReport& report, uint64_t write_position) {
  if (!is_snapshot() || ended()) return;
  switch (report.result) {
    case TapResult::kAccepted:
      return;
    case TapResult::kOk:
      if (!end_position_) end_position_ = write_position;
      return;
    case TapResult::kAnotherCapture:
      return RefuseSnapshot(CaptureObstacle::kOtherCapture, report.detail);
    default: {
      const CaptureObstacle obstacle = ObstacleOf(report.state);
      return RefuseSnapshot(
          obstacle == CaptureObstacle::kNone ? CaptureObstacle::kNotArmed : obstacle,
          report.detail);
    }
  }
}

void WorkerCapture::OnStateChange(const TapReport& report, const TapView& tap) {
  const WorkerAction action = Apply(WorkerEvent::kTapStateChanged);
  if (action == WorkerAction::kCheckObstacles) return Arm(tap);
  if (action != WorkerAction::kReportTapState) return;
  const bool records = report.state == (holds() ? TapState::kHolding : TapState::kStreaming);
  if (records) {
    // The tap may record another capture, for which this one waits.
    if (report.capture_id == plan_.id) OnRunning();
    return;
  }
  EnterWaiting(report);
}

}  // namespace neurontrace
