// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/worker_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace neurontrace {

WorkerCapture::WorkerCapture(const StreamSurroundings& surroundings, SourceListener& listener,
                             const CapturePlan& plan, const WorkerIdentity& worker)
    : surroundings_(surroundings),
      listener_(listener),
      plan_(plan),
      worker_(worker),
      streams_(std::make_unique<CaptureStreams>(
          surroundings, plan.id, worker,
          EventSelection{plan.filter, plan.spec.neuron_cores, plan.spec.by_execution(),
                         plan.spec.worker_gids, is_snapshot()})) {
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
  if (!recorded_ && hopeless_) {
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

}  // namespace neurontrace
