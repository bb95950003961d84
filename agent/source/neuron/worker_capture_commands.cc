// SPDX-License-Identifier: Apache-2.0
// The part of WorkerCapture that speaks with the tap: what it is told, and what its answers mean.
#include <fmt/format.h>

#include <algorithm>

#include "agent/source/neuron/worker_capture.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStartAgainNs = 1'000'000'000;

}  // namespace

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
    if (tap.state == TapState::kHolding && tap.running == plan_.spec.flight_recorder) {
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
    streams_->SetWindow(SnapshotWindow(rings, moment.realtime_ns, plan_.spec.last_ns));
    stop_deadline_ns_ = std::max(NowNs(), moment.monotonic_ns) + kCollectPatienceNs;
  }
}

// --- Commands ------------------------------------------------------------------------------------

bool WorkerCapture::WantsTap() const {
  return !is_snapshot() && confirmed_ns_ && moment_ && !stop_wanted_ && !ended_ && !hopeless_;
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
    return EnterKept(DescribeForCapture(state, 0, tap.facts.detail), ObstacleOf(state));
  }
  next_start_ns_ = NowNs() + kStartAgainNs;
  absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, tap.facts, fidelity_level());
  hopeless_ = !order.ok();
  if (hopeless_) {
    return EnterKept(std::string(order.status().message()), CaptureObstacle::kNoEventType);
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
  if (plan_.spec.flight_recorder.empty()) {
    return RefuseSnapshot(CaptureObstacle::kNotArmed, "it names no flight recorder");
  }
  if (state_ != CaptureWorkerState::kArmed) Enter(CaptureWorkerState::kStarting, "");
  start_sent_ =
      tap.session->SendCollect(plan_.id, plan_.spec.flight_recorder, moment_->monotonic_ns).ok();
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
  WorkerFidelity::Orders orders =
      fidelity_->Observe({.now_ns = NowNs(),
                          .realtime_ns = surroundings_.clock.RealtimeNs(),
                          .totals = {core_ns, streams_->counts().bytes},
                          .facts = tap.facts,
                          // A core that is followed by its executions would have to be found again.
                          .may_restart = is_told && tracing_ && !plan_.spec.by_execution()});
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

void WorkerCapture::EnterKept(std::string detail, CaptureObstacle obstacle) {
  if (recorded_) return Enter(CaptureWorkerState::kRecording, std::move(detail));
  Enter(CaptureWorkerState::kRefused, std::move(detail), obstacle);
}

void WorkerCapture::EnterKept(const TapReport& report) {
  const CaptureObstacle obstacle = ObstacleOf(report.state);
  EnterKept(DescribeForCapture(report.state, report.nrt_status, report.detail),
            obstacle == CaptureObstacle::kNone ? CaptureObstacle::kRuntimeRefused : obstacle);
}

// What the tap says may be read when its time has come since: that is no obstacle.
void WorkerCapture::EnterWaiting(const TapReport& report) {
  if (recorded_ || ObstacleOf(report.state) != CaptureObstacle::kNone) return EnterKept(report);
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
      return EnterKept(fmt::format("capture {} runs on this worker", report.capture_id.ToString()),
                       CaptureObstacle::kOtherCapture);
    case TapResult::kUnsupported:
      hopeless_ = true;
      return EnterKept(DescribeForCapture(report.state, report.nrt_status, report.detail),
                       CaptureObstacle::kRuntimeTooOld);
    default:
      return EnterKept(report);
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
