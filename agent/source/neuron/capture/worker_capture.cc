// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/worker_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStartAgainNs = 1'000'000'000;

}  // namespace

void Suspension::GiveWay(const CaptureId& other, uint64_t now_ns) {
  if (other == other_ && since_ns_) return;
  // From one to the next, without a trace of its own in between.
  if (since_ns_ && !other_.empty()) {
    if (now_ns > *since_ns_) due_.push_back(GaveWayFromTo(*since_ns_, now_ns, words_));
    since_ns_.reset();
  }
  other_ = other;
  words_ = DescribeSuspension(other);
  told_ns_ = 0;
  if (!since_ns_) since_ns_ = now_ns;
}

Loss Suspension::TraceStopped(uint64_t at_ns) {
  // The tap knows it better than who told it, unless this was said already.
  if (!since_ns_ || told_ns_ == 0 || at_ns < *since_ns_) since_ns_ = at_ns;
  return GaveWayFromTo(*since_ns_, std::max(told_ns_, *since_ns_), words_);
}

std::optional<Loss> Suspension::TraceStarted(uint64_t at_ns) {
  told_ns_ = 0;
  const std::optional<uint64_t> since_ns = std::exchange(since_ns_, std::nullopt);
  if (!since_ns || at_ns <= *since_ns) return std::nullopt;
  return GaveWayFromTo(*since_ns, at_ns, words_);
}

std::vector<Loss> Suspension::Take(uint64_t now_ns, bool is_last) {
  const uint64_t from_ns = std::max(since_ns_.value_or(0), told_ns_);
  if (since_ns_ && now_ns > from_ns && (is_last || now_ns - from_ns >= kTellNs)) {
    due_.push_back(GaveWayFromTo(*since_ns_, now_ns, words_));
    told_ns_ = now_ns;
  }
  return std::exchange(due_, {});
}

WorkerCapture::WorkerCapture(const StreamSetup& surroundings, SourceListener& listener,
                             const CapturePlan& plan, const WorkerIdentity& worker)
    : surroundings_(surroundings),
      listener_(listener),
      plan_(plan),
      worker_(worker),
      streams_(std::make_unique<CaptureStreams>(
          surroundings, plan.id, worker,
          EventSelection{plan.filter, plan.spec.selection.neuron_cores,
                         plan.spec.conditions.by_execution(), plan.spec.selection.worker_gids,
                         is_snapshot()})) {
  if (WorkerFidelity::IsFor(plan_.spec)) fidelity_.emplace(plan_);
}

uint64_t WorkerCapture::ring_events() const { return RingEventsPerCore(plan_.spec); }

void WorkerCapture::Enter(CaptureWorkerState state, std::string detail, CaptureObstacle obstacle) {
  if (detail.size() > limits::kDetailBytesMax) detail.resize(limits::kDetailBytesMax);
  if (state == CaptureWorkerState::kRefused && moment_) refused_since_ = true;
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
                             .begun_realtime_ns = begun_realtime_ns_,
                             .first_execution = executions.first,
                             .newest_execution = executions.newest,
                             .reaches_back_ns = streams_->reaches_back_ns()};
  if (begun_realtime_ns_ == 0 || !moment_) return status;
  const auto offset_ns = static_cast<int64_t>(begun_realtime_ns_ - moment_->realtime_ns);
  status.joined_late = late_ || (refused_since_ && offset_ns > 0);
  status.begun_as_planned = moment_->named && !status.joined_late;
  if (status.begun_as_planned) status.begin_offset_ns = offset_ns;
  return status;
}

void WorkerCapture::ReportCounts() {
  if (state_ == CaptureWorkerState::kUnspecified) return;
  CaptureWorkerStatus status = MakeStatus();
  if (reported_ == status) return;
  reported_ = std::move(status);
  listener_.OnCaptureWorker(*reported_);
}

void WorkerCapture::Resume(const std::vector<StreamCursor>& cursors) {
  const bool knows_better = streams_->stream_count() > 0;  // by having read it
  streams_->Resume(cursors);
  const bool goes_on = std::any_of(cursors.begin(), cursors.end(), [&](const auto& cursor) {
    return cursor.stream.worker == worker_ && cursor.next_sequence > 0 && !cursor.ended;
  });
  if (goes_on && !knows_better) recorded_ = tracing_ = began_unseen_ = true;
}

void WorkerCapture::OnTraceStarted(const TapRecord& record, const WorkerFacts& facts) {
  if (ended_) return;
  streams_->BeginTrace(record);
  restart_stops_ = 0;
  if (fidelity_) {
    if (std::optional<FidelityNote> note = fidelity_->OnTraceStarted(record, facts)) {
      streams_->SetFidelity(*std::move(note));
      streams_->Flush(record.next_position);
    }
  }
  if (is_continuous()) {
    if (std::optional<Loss> gap = given_way_.TraceStarted(record.host_realtime_ns)) {
      streams_->AddLoss(record.position, *std::move(gap));
    }
  }
  recorded_ = tracing_ = true;
  NoteBegun(record);
  if (!stop_wanted_ && !ended_ && !suspended_for_) Enter(CaptureWorkerState::kRecording, "");
  ReportCounts();
}

void WorkerCapture::NoteBegun(const TapRecord& record) {
  const bool goes_on = began_unseen_ || (record.flags & kTapRecordFlagResumed) != 0;
  if (begun_realtime_ns_ != 0 || goes_on) return;
  begun_realtime_ns_ = record.host_realtime_ns;
}

void WorkerCapture::OnTraceStopped(const TapRecord& record) {
  if (ended_) return;
  TapTraceStopped stopped = {};
  if (record.payload_bytes < sizeof stopped) return;
  std::memcpy(&stopped, record.payload, sizeof stopped);
  tracing_ = false;
  streams_->EndTrace(record);
  if (fidelity_) fidelity_->OnTraceStopped(record);
  if (stopped.final_drain_complete == 0 && streams_->AnyPassing()) {
    streams_->AddLoss(record.position, {.place = LossPlace::kRuntimeRing,
                                        .reason = LossReason::kUnknown,
                                        .events_unknown = true,
                                        .first_timestamp_ns = record.host_realtime_ns,
                                        .last_timestamp_ns = record.host_realtime_ns,
                                        .detail = "the last drain of the rings was not complete"});
  }
  const auto reason = static_cast<TapStopReason>(stopped.reason);
  if (reason == TapStopReason::kCommand && restart_stops_ > 0) {
    --restart_stops_;
    return;
  }
  // With a budget, a trace of an agent before this one may have begun anew there.
  if (is_continuous() && reason == TapStopReason::kCommand && !stop_wanted_ && !ended_ &&
      (suspended_for_ || !fidelity_)) {
    streams_->AddLoss(record.position, given_way_.TraceStopped(record.host_realtime_ns));
  }
  if (is_snapshot()) {
    if (!end_position_) end_position_ = record.next_position;
  } else if (stop_wanted_) {
    if (reason == TapStopReason::kCommand && !end_position_) end_position_ = record.next_position;
  } else if (!ended_ && !suspended_for_) {
    Enter(state_, DescribeStop(reason));
  }
}

void WorkerCapture::Tick(uint64_t position, bool drained) {
  if (!ended_ && end_position_ && position >= *end_position_) {
    EndAsAsked(position);
  } else if (!ended_ && stop_deadline_ns_ != 0) {
    const uint64_t patience_ns = is_snapshot() ? kCollectPatienceNs : kStopPatienceNs;
    if (!drained) stop_deadline_ns_ = std::max(stop_deadline_ns_, NowNs() + patience_ns);
    if (NowNs() >= stop_deadline_ns_) {
      if (recorded_) {
        streams_->AddLoss(position, {.place = LossPlace::kTapBuffer,
                                     .reason = LossReason::kUnknown,
                                     .events_unknown = true,
                                     .detail = is_snapshot() ? "the tap did not answer COLLECT"
                                                             : "the tap did not answer STOP"});
      }
      EndAsAsked(position);
    }
  }
  if (!ended_) {
    TellGivenWay(position, false);
    streams_->Tick(position);
  } else if (finished() && state_ == CaptureWorkerState::kStopping) {
    if (streams_->counts().given_up) {
      Enter(CaptureWorkerState::kLost,
            "a stream was given up on the way to the aggregator; its agent's log says why");
    } else {
      Enter(CaptureWorkerState::kComplete, detail_);
    }
  }
}

// By what the tap said, or because it said nothing for too long.
void WorkerCapture::EndAsAsked(uint64_t position) {
  // A tap that has collected may have found nothing.
  const bool was_to_begin = is_snapshot() && moment_ ? !end_position_ : was_to_begin_;
  if (was_to_begin && !has_part()) {
    Enter(CaptureWorkerState::kRefused,
          !start_sent_    ? "its tap was not connected when it was to begin"
          : is_snapshot() ? "its tap was told to collect, and did not answer"
                          : "its tap was told to begin, and never said that it had",
          CaptureObstacle::kNoAnswer);
  }
  End(position);
}

void WorkerCapture::TellGivenWay(uint64_t position, bool is_last) {
  if (!is_continuous()) return;
  for (Loss& gap : given_way_.Take(surroundings_.clock.RealtimeNs(), is_last)) {
    streams_->AddLoss(position, std::move(gap));
  }
}

void WorkerCapture::End(uint64_t position) {
  if (ended_) return;
  TellGivenWay(position, true);
  streams_->End(position);
  ended_ = true;
  // A snapshot is nobody's to stop.
  if (is_snapshot() &&
      (state_ == CaptureWorkerState::kRecording || state_ == CaptureWorkerState::kStarting)) {
    Enter(CaptureWorkerState::kStopping, detail_);
  }
}

void WorkerCapture::EndBecauseGone(uint64_t position, bool said_goodbye) {
  if (ended_) return;
  if (tracing_ && !said_goodbye) {
    streams_->AddLoss(position,
                      {.place = LossPlace::kRuntimeRing,
                       .reason = LossReason::kUnknown,
                       .events_unknown = true,
                       .detail = "the worker died with what its rings held and was not fetched"});
  }
  End(position);
  if (!recorded_ && cannot_start_) {
    // It stays refused for the reason that no START could be made.
  } else if (!recorded_) {
    Enter(CaptureWorkerState::kRefused, "the worker ended before anything was recorded",
          CaptureObstacle::kEnded);
  } else if (tracing_ && !said_goodbye) {
    Enter(CaptureWorkerState::kLost, "the worker died; what it had handed over is kept");
  } else {
    Enter(CaptureWorkerState::kStopping, "the worker ended");
  }
}

void WorkerCapture::EndBecauseBroken(uint64_t position, const std::string& why) {
  if (ended_) return;
  streams_->AddLoss(position, {.place = LossPlace::kTapBuffer,
                               .reason = LossReason::kMalformed,
                               .events_unknown = true,
                               .detail = why});
  End(position);
  Enter(CaptureWorkerState::kLost, why);
}

// --- The tap: what it is told, and what its answers mean -----------------------------------------

void WorkerCapture::Confirm() {
  if (!confirmed_ns_) confirmed_ns_ = NowNs();
  if (state_ == CaptureWorkerState::kUnspecified) Enter(CaptureWorkerState::kStarting, "");
}

void WorkerCapture::OnRunning() {
  if (stop_wanted_ || ended_) return;
  recorded_ = tracing_ = true;
  Enter(CaptureWorkerState::kRecording, "");
}

// --- Before it begins ----------------------------------------------------------------------------

CaptureObstacle WorkerCapture::ObstacleNow(const TapView& tap, std::string& detail) const {
  if (tap.session == nullptr) {
    detail = "its tap is not connected";
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
    detail = "its rings are not held by this flight recorder";
    return CaptureObstacle::kNotArmed;
  }
  // It would have to give way, or this one waits for it as a standing one does.
  const CaptureMode mode = plan_.spec.mode;
  if (tap.running_mode && tap.running != plan_.id &&
      (IsStanding(mode) ? Precedence(*tap.running_mode) == Precedence(mode)
                        : Precedence(*tap.running_mode) >= Precedence(mode))) {
    detail = fmt::format("capture {} runs on this worker", tap.running.ToString());
    return CaptureObstacle::kOtherCapture;
  }
  const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  if (order.ok()) return CaptureObstacle::kNone;
  detail = std::string(order.status().message());
  return CaptureObstacle::kNoEventType;
}

void WorkerCapture::Arm(const TapView& tap) {
  if (moment_ || stop_wanted_ || ended_ || recorded_) return;
  arming_ = true;
  if (suspended_for_) return;
  std::string detail;
  const CaptureObstacle obstacle = ObstacleNow(tap, detail);
  Enter(obstacle == CaptureObstacle::kNone ? CaptureWorkerState::kArmed
                                           : CaptureWorkerState::kRefused,
        std::move(detail), obstacle);
}

void WorkerCapture::Begin(const PlannedMoment& moment, bool late, HeldRings& rings) {
  if (moment_ || ended_) return;
  // One that is found recording began when it was told to.
  late_ = late && !recorded_ && (!moment.named || NowNs() > moment.monotonic_ns);
  moment_ = moment;
  if (is_snapshot()) {
    streams_->SetWindow(SnapshotWindow(rings, moment.realtime_ns, plan_.spec.timing.last_ns));
    stop_deadline_ns_ = std::max(NowNs(), moment.monotonic_ns) + kCollectPatienceNs;
  }
}

// --- Commands ------------------------------------------------------------------------------------

bool WorkerCapture::WantsTap() const {
  return !is_snapshot() && confirmed_ns_ && moment_ && !stop_wanted_ && !ended_ && !cannot_start_;
}

void WorkerCapture::TryStart(const TapView& tap) {
  if (tap.session == nullptr || !confirmed_ns_ || ended_) return;
  if (stop_wanted_ && !stop_sent_) return Stop(tap.session, stop_at_ns_);
  if (stop_wanted_ || suspended_for_ || !moment_ || start_sent_) return;
  if (is_snapshot()) return TryCollect(tap);
  if (NowNs() < next_start_ns_) return;
  // Groups of event types cannot be resolved before the runtime has said what types it has; the tap
  // tells its new state a moment before its new facts, and may be writing them.
  const bool types_come = tap.state == TapState::kNotInitialised || !tap.facts.runtime_known;
  if (types_come && tap.facts.event_types.empty() && !plan_.filter.selects_all()) {
    const TapState state = TapState::kNotInitialised;
    return EnterStored(DescribeForCapture(state, 0, tap.facts.detail), ObstacleOf(state));
  }
  next_start_ns_ = NowNs() + kStartAgainNs;
  absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  cannot_start_ = !order.ok();
  if (cannot_start_) {
    return EnterStored(std::string(order.status().message()), CaptureObstacle::kNoEventType);
  }
  if (!is_due()) order->begin_at_monotonic_ns = moment_->monotonic_ns;
  start_sent_ = tap.session->SendStart(*order).ok();
}

void WorkerCapture::TryCollect(const TapView& tap) {
  if (end_position_) return;
  const uint64_t now_ns = NowNs();
  if (now_ns >= moment_->monotonic_ns && now_ns - moment_->monotonic_ns > kCutAgeMaxNs) {
    // What was collected in time may not have been read yet; nothing more is taken.
    if (!collected_before_) collected_before_ = tap.write_position;
    if (recorded_ || tap.read_position < *collected_before_) return;
    return RefuseSnapshot(CaptureObstacle::kAgentLost, "its agent was away at the cut");
  }
  if (plan_.spec.timing.flight_recorder.empty()) {
    return RefuseSnapshot(CaptureObstacle::kNotArmed, "it names no flight recorder");
  }
  if (state_ != CaptureWorkerState::kArmed) Enter(CaptureWorkerState::kStarting, "");
  start_sent_ =
      tap.session->SendCollect(plan_.id, plan_.spec.timing.flight_recorder, moment_->monotonic_ns)
          .ok();
}

// What has been read of it before stays, as the end of what there is.
void WorkerCapture::RefuseSnapshot(CaptureObstacle obstacle, std::string detail) {
  if (ended_ || recorded_) return;
  Enter(CaptureWorkerState::kRefused, std::move(detail), obstacle);
  End(0);
}

void WorkerCapture::Stop(TapSession* session, uint64_t stop_at_ns) {
  if (ended_) return;
  if (is_snapshot() && moment_) return;  // ends by itself, and soon
  const uint64_t stopped_ns = std::max(NowNs(), stop_wanted_ ? stop_at_ns_ : stop_at_ns);
  const uint64_t patience_ns = stopped_ns + kStopPatienceNs;
  if (!stop_wanted_) {
    stop_wanted_ = true;
    stop_at_ns_ = stop_at_ns;
    stop_deadline_ns_ = patience_ns;
    EnterStopping(stopped_ns);
  }
  if (session == nullptr) return;
  stop_sent_ = true;
  if (!session->SendStop(plan_.id, stop_at_ns_).ok()) {
    // The deadline ends the streams if the connection does not come back before.
    stop_deadline_ns_ = patience_ns;
  }
}

void WorkerCapture::EnterStopping(uint64_t stopped_ns) {
  if (state_ == CaptureWorkerState::kRefused) return;
  const bool was_armed = state_ == CaptureWorkerState::kArmed;
  was_to_begin_ = moment_ && !suspended_for_ && stopped_ns >= moment_->monotonic_ns;
  std::string detail = detail_;
  if (suspended_for_) {
    detail = fmt::format("was suspended for capture {} when it ended", suspended_for_->ToString());
  } else if (was_armed && !was_to_begin_) {
    detail = "stopped before it began";
  }
  Enter(CaptureWorkerState::kStopping, std::move(detail));
}

void WorkerCapture::GiveWay(const TapView& tap, const CaptureId& other) {
  if (stop_wanted_ || ended_) return;
  if (!suspended_for_) (recorded_ ? began_unseen_ : refused_since_) = true;
  suspended_for_ = other;
  given_way_.GiveWay(other, surroundings_.clock.RealtimeNs());
  // Also one that the tap still has when it comes back, or of which the order was lost.
  if (tap.session != nullptr && !way_told_ && (start_sent_ || tap.running == plan_.id)) {
    way_told_ = tap.session->SendStop(plan_.id).ok();
  }
  Enter(CaptureWorkerState::kSuspended,
        fmt::format("gives way to capture {}; goes on after it", other.ToString()),
        CaptureObstacle::kOtherCapture);
}

void WorkerCapture::TakeBack() {
  if (!suspended_for_) return;
  suspended_for_.reset();
  way_told_ = start_sent_ = false;
  next_start_ns_ = 0;
  if (!stop_wanted_ && !ended_) Enter(CaptureWorkerState::kStarting, "");
}

void WorkerCapture::Reconnect(const TapView& tap) {
  restart_answers_ = restart_stops_ = 0;
  if (fidelity_) fidelity_->OnReconnect();
  way_told_ = false;
  start_sent_ = start_sent_ && stop_wanted_;
  next_start_ns_ = 0;
  if (stop_wanted_) {
    Stop(tap.session, stop_at_ns_);
  } else if (!moment_ && arming_) {
    Arm(tap);
  }
}

// --- Budget --------------------------------------------------------------------------------------

std::optional<uint32_t> WorkerCapture::fidelity() const {
  if (!fidelity_) return std::nullopt;
  return fidelity_->told_level();
}

void WorkerCapture::Govern(const TapView& tap, uint64_t core_ns) {
  if (!fidelity_ || !recorded_ || stop_wanted_ || suspended_for_ || ended_) return;
  const bool is_told = tap.session != nullptr && start_sent_ && tap.running == plan_.id;
  WorkerFidelity::Orders orders = fidelity_->Observe(
      {.now_ns = NowNs(),
       .realtime_ns = surroundings_.clock.RealtimeNs(),
       .totals = {core_ns, streams_->counts().bytes},
       .facts = tap.facts,
       // A core that is followed by its executions would have to be found again.
       .may_restart = is_told && tracing_ && !plan_.spec.conditions.by_execution()});
  if (orders.tell) streams_->SetFidelity(*std::move(orders.tell));
  if (orders.restart) RestartTrace(tap);
}

// A START right behind the STOP: the tap hardly lets a moment pass between the two.
void WorkerCapture::RestartTrace(const TapView& tap) {
  const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  if (!order.ok() || !tap.session->SendStop(plan_.id).ok()) return;
  began_unseen_ = true;
  ++restart_answers_;
  ++restart_stops_;
  start_sent_ = tap.session->SendStart(*order).ok();
}

// --- Answers -------------------------------------------------------------------------------------

void WorkerCapture::EnterStored(std::string detail, CaptureObstacle obstacle) {
  if (recorded_) return Enter(CaptureWorkerState::kRecording, std::move(detail));
  Enter(CaptureWorkerState::kRefused, std::move(detail), obstacle);
}

void WorkerCapture::EnterStored(const TapReport& report) {
  const CaptureObstacle obstacle = ObstacleOf(report.state);
  EnterStored(DescribeForCapture(report.state, report.nrt_status, report.detail),
              obstacle == CaptureObstacle::kNone ? CaptureObstacle::kRuntimeRefused : obstacle);
}

// What the tap says may be read when its time has come since: that is no obstacle.
void WorkerCapture::EnterWaiting(const TapReport& report) {
  if (recorded_ || ObstacleOf(report.state) != CaptureObstacle::kNone) return EnterStored(report);
  Enter(is_due() ? CaptureWorkerState::kStarting : CaptureWorkerState::kArmed, "");
}

void WorkerCapture::OnStartAnswer(const TapReport& report) {
  if (ended_ || is_snapshot()) return;
  // Though it may have been told to stop since.
  if (report.result == TapResult::kOk) recorded_ = true;
  if (stop_wanted_ || suspended_for_) return;
  switch (report.result) {
    case TapResult::kOk:
      tracing_ = true;
      return Enter(CaptureWorkerState::kRecording, "");
    case TapResult::kAccepted:
      return EnterWaiting(report);
    case TapResult::kAnotherCapture:
      start_sent_ = false;  // tried again
      next_start_ns_ = NowNs() + kStartAgainNs;
      return EnterStored(
          fmt::format("capture {} runs on this worker", report.capture_id.ToString()),
          CaptureObstacle::kOtherCapture);
    case TapResult::kUnsupported:
      cannot_start_ = true;
      return EnterStored(DescribeForCapture(report.state, report.nrt_status, report.detail),
                         CaptureObstacle::kRuntimeTooOld);
    default:
      return EnterStored(report);
  }
}

void WorkerCapture::OnStopAnswer(uint64_t write_position) {
  if (restart_answers_ > 0) {
    --restart_answers_;
    return;
  }
  // The tap drains before it answers: what there is of this capture stands before this place.
  if (stop_wanted_ && !end_position_) end_position_ = write_position;
}

void WorkerCapture::OnCollectAnswer(const TapReport& report, uint64_t write_position) {
  if (!is_snapshot() || ended_) return;
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
  if (!moment_ && arming_) return Arm(tap);
  if (stop_wanted_ || ended_ || suspended_for_ || is_snapshot() || !start_sent_) return;
  const bool records = report.state == (holds() ? TapState::kHolding : TapState::kStreaming);
  if (records) {
    // The tap may yet run another one, for which this one waits.
    if (report.capture_id == plan_.id) OnRunning();
    return;
  }
  EnterWaiting(report);
}

}  // namespace neurontrace
