// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/worker_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kStartAgainNs = 1'000'000'000;
// From the STOP, or the last record read since, to giving up on the tap's answer.
constexpr uint64_t kStopPatienceNs = 10'000'000'000;

size_t NameBytes(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string& name : names) bytes += name.size() + 1;
  return bytes;
}

bool FitsStart(const std::vector<std::string>& names) {
  return names.size() <= kTapEventNamesMax &&
         NameBytes(names) + sizeof(TapStart) <= kTapMessageBytesMax &&
         std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return name.size() <= kTapEventNameBytesMax; });
}

uint64_t RingEventsPerCore(const CaptureSpec& spec) {
  const uint64_t events = spec.ring_events_per_core;
  return std::clamp(events == 0 ? limits::kRingEventsPerCoreDefault : events, kTapEventsPerCoreMin,
                    kTapEventsPerCoreMax);
}

std::string DescribeStop(TapStopReason reason) {
  switch (reason) {
    case TapStopReason::kCommand:
      return "";
    case TapStopReason::kRuntimeClosed:
      return "the worker closed the runtime; recording goes on when it is initialised again";
    case TapStopReason::kProcessExit:
      return "the worker ended";
    case TapStopReason::kYielded:
      return "gave way to another profiler; recording goes on when that ends";
    case TapStopReason::kOrphaned:
      return "stopped because no agent was there for a minute";
    case TapStopReason::kFetchFailed:
      return "somebody else ended the runtime's trace; recording goes on when it can";
  }
  return "stopped for a reason this agent does not know";
}

}  // namespace

absl::StatusOr<TapStartOrder> MakeStartOrder(const CapturePlan& plan, const WorkerFacts& worker) {
  TapStartOrder order;
  order.capture_id = plan.id;
  order.events_per_core = RingEventsPerCore(plan.spec);
  for (const uint32_t core : plan.spec.neuron_cores) {
    if (core < limits::kCoresPerWorkerMax) order.core_bitmap[core / 64] |= uint64_t{1} << core % 64;
  }
  if (plan.filter.selects_all() || worker.event_types.empty()) return order;
  std::vector<std::string> wanted;
  std::vector<std::string> unwanted;
  for (const std::string& type : worker.event_types) {
    (plan.filter.Selects(type) ? wanted : unwanted).push_back(type);
  }
  if (wanted.empty()) {
    return InvalidArgument("none of the runtime's {} event types is selected",
                           worker.event_types.size());
  }
  if (unwanted.empty()) return order;
  // Leaving out rather than picking, where that is no longer: types that the list does not name
  // are then recorded, and the agent's filter has the last word.
  if (unwanted.size() <= wanted.size() && FitsStart(unwanted)) {
    order.rule = TapEventRule::kAllButThese;
    order.names = std::move(unwanted);
  } else if (FitsStart(wanted)) {
    order.rule = TapEventRule::kOnlyThese;
    order.names = std::move(wanted);
  }
  return order;
}

std::string DescribeForCapture(TapState state, int32_t nrt_status, const std::string& detail) {
  std::string words;
  switch (state) {
    case TapState::kNotInitialised:
      words = "the runtime is not initialised yet; recording begins when it is";
      break;
    case TapState::kBusyOtherProfiler:
      words = "another profiler is at work; recording begins when it ends";
      break;
    case TapState::kRuntimeTooOld:
      words = "the runtime is too old: it lacks the trace calls of Neuron SDK 2.22";
      break;
    case TapState::kClosed:
      words = "the runtime is closed; recording begins when it is initialised again";
      break;
    case TapState::kExited:
      words = "the process is ending";
      break;
    case TapState::kStartFailed:
      words =
          fmt::format("the runtime refused to start a trace (status {}); tried again", nrt_status);
      break;
    case TapState::kIdle:
    case TapState::kStreaming:
      break;
  }
  if (!detail.empty()) words += (words.empty() ? "" : ": ") + detail;
  return words;
}

WorkerCapture::WorkerCapture(const StreamSurroundings& surroundings, SourceListener& listener,
                             const CapturePlan& plan, const WorkerIdentity& worker)
    : surroundings_(surroundings),
      listener_(listener),
      plan_(plan),
      worker_(worker),
      streams_(std::make_unique<CaptureStreams>(
          surroundings, plan.id, worker, EventSelection{plan.filter, plan.spec.neuron_cores})) {
  Enter(CaptureWorkerState::kStarting, "");
}

uint64_t WorkerCapture::ring_events() const { return RingEventsPerCore(plan_.spec); }

void WorkerCapture::Enter(CaptureWorkerState state, std::string detail) {
  if (state == state_ && detail == detail_) return;
  state_ = state;
  detail_ = std::move(detail);
  if (detail_.size() > limits::kDetailBytesMax) detail_.resize(limits::kDetailBytesMax);
  ReportCounts();
}

void WorkerCapture::ReportCounts() {
  const StreamWriter::Counts counts = streams_->counts();
  CaptureWorkerStatus status{.capture_id = plan_.id,
                             .worker = worker_,
                             .state = state_,
                             .detail = detail_,
                             .events_read = counts.read,
                             .events_stored = counts.stored,
                             .events_lost = counts.lost,
                             .framework = false,
                             .streams = streams_->stream_count()};
  if (reported_ == status) return;
  reported_ = status;
  listener_.OnCaptureWorker(status);
}

void WorkerCapture::TryStart(TapSession& session, TapState state, const WorkerFacts& facts) {
  if (!confirmed_ns_ || start_sent_ || stop_wanted_ || ended_ || NowNs() < next_start_ns_) return;
  // Groups of event types cannot be resolved before the runtime has said what types it has.
  if (state == TapState::kNotInitialised && facts.event_types.empty() &&
      !plan_.filter.selects_all()) {
    Enter(CaptureWorkerState::kRefused, DescribeForCapture(state, 0, facts.detail));
    return;
  }
  next_start_ns_ = NowNs() + kStartAgainNs;
  const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, facts);
  if (!order.ok()) {
    Enter(CaptureWorkerState::kRefused, std::string(order.status().message()));
    return;
  }
  start_sent_ = session.SendStart(*order).ok();
}

void WorkerCapture::OnRunning() {
  if (stop_wanted_ || ended_) return;
  recorded_ = tracing_ = true;
  Enter(CaptureWorkerState::kRecording, "");
}

void WorkerCapture::Stop(TapSession* session) {
  if (ended_) return;
  if (!stop_wanted_) stop_deadline_ns_ = NowNs() + kStopPatienceNs;
  stop_wanted_ = true;
  if (state_ != CaptureWorkerState::kRefused) Enter(CaptureWorkerState::kStopping, detail_);
  if (session != nullptr && !session->SendStop(plan_.id).ok()) {
    // The deadline ends the streams if the connection does not come back before.
    stop_deadline_ns_ = NowNs() + kStopPatienceNs;
  }
}

void WorkerCapture::Reconnect(TapSession& session, TapState state, const WorkerFacts& facts) {
  start_sent_ = false;
  next_start_ns_ = 0;
  if (stop_wanted_) {
    Stop(&session);
  } else {
    TryStart(session, state, facts);
  }
}

void WorkerCapture::OnStartAnswer(const TapReport& report) {
  if (stop_wanted_ || ended_) return;
  switch (report.result) {
    case TapResult::kOk:
      recorded_ = tracing_ = true;
      Enter(CaptureWorkerState::kRecording, "");
      return;
    case TapResult::kAccepted:
      Enter(CaptureWorkerState::kRefused,
            DescribeForCapture(report.state, report.nrt_status, report.detail));
      return;
    case TapResult::kAnotherCapture:
      start_sent_ = false;  // tried again
      next_start_ns_ = NowNs() + kStartAgainNs;
      Enter(CaptureWorkerState::kRefused,
            fmt::format("capture {} runs on this worker", report.capture_id.ToString()));
      return;
    default:
      Enter(CaptureWorkerState::kRefused,
            DescribeForCapture(report.state, report.nrt_status, report.detail));
  }
}

void WorkerCapture::OnStopAnswer(uint64_t write_position) {
  // The tap drains before it answers: what there is of this capture stands before this place.
  if (stop_wanted_ && !end_position_) end_position_ = write_position;
}

void WorkerCapture::OnStateChange(const TapReport& report) {
  if (stop_wanted_ || ended_ || !start_sent_) return;
  if (report.state == TapState::kStreaming) {
    recorded_ = tracing_ = true;
    Enter(CaptureWorkerState::kRecording, "");
  } else {
    // A worker that has recorded stays "recording": what it gave is kept, and it may go on.
    Enter(recorded_ ? CaptureWorkerState::kRecording : CaptureWorkerState::kRefused,
          DescribeForCapture(report.state, report.nrt_status, report.detail));
  }
}

void WorkerCapture::Resume(const std::vector<StreamCursor>& cursors) {
  const bool knows_better = streams_->stream_count() > 0;  // by having read it
  streams_->Resume(cursors);
  const bool goes_on = std::any_of(cursors.begin(), cursors.end(), [&](const auto& cursor) {
    return cursor.stream.worker == worker_ && cursor.next_sequence > 0 && !cursor.ended;
  });
  if (goes_on && !knows_better) recorded_ = tracing_ = true;
}

void WorkerCapture::OnTraceStarted(const TapRecord& record) {
  streams_->BeginTrace(record);
  recorded_ = tracing_ = true;
  if (!stop_wanted_ && !ended_) Enter(CaptureWorkerState::kRecording, "");
}

void WorkerCapture::OnTraceStopped(const TapRecord& record) {
  TapTraceStopped stopped = {};
  if (record.payload_bytes < sizeof stopped) return;
  std::memcpy(&stopped, record.payload, sizeof stopped);
  tracing_ = false;
  streams_->EndTrace(record);
  if (stopped.final_drain_complete == 0) {
    streams_->AddLoss(record.position, {.place = LossPlace::kRuntimeRing,
                                        .reason = LossReason::kUnknown,
                                        .events_unknown = true,
                                        .first_timestamp_ns = record.host_realtime_ns,
                                        .last_timestamp_ns = record.host_realtime_ns,
                                        .detail = "the last drain of the rings was not complete"});
  }
  const auto reason = static_cast<TapStopReason>(stopped.reason);
  if (stop_wanted_) {
    if (reason == TapStopReason::kCommand && !end_position_) end_position_ = record.next_position;
  } else if (!ended_) {
    Enter(state_, DescribeStop(reason));
  }
}

void WorkerCapture::Tick(uint64_t position, bool drained) {
  if (!ended_ && end_position_ && position >= *end_position_) {
    End(position);
  } else if (!ended_ && stop_wanted_) {
    if (!drained) stop_deadline_ns_ = NowNs() + kStopPatienceNs;
    if (NowNs() >= stop_deadline_ns_) {
      if (recorded_) {
        streams_->AddLoss(position, {.place = LossPlace::kTapBuffer,
                                     .reason = LossReason::kUnknown,
                                     .events_unknown = true,
                                     .detail = "the tap did not answer STOP"});
      }
      End(position);
    }
  }
  if (!ended_) {
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

void WorkerCapture::End(uint64_t position) {
  if (ended_) return;
  streams_->End(position);
  ended_ = true;
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
  if (!recorded_) {
    Enter(CaptureWorkerState::kRefused, "the worker ended before anything was recorded");
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
