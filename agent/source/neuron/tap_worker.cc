// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap_worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "trace/capture_selection.h"

namespace neurontrace {
namespace {

// How long a dead worker's records wait for the aggregator to tell their capture.
constexpr uint64_t kDeadRecordsPatienceNs = 300'000'000'000;
constexpr size_t kForgottenMax = 64;

}  // namespace

TapWorker::TapWorker(Shared& shared, WorkerIdentity identity, Peer peer,
                     std::unique_ptr<TapBufferReader> reader)
    : shared_(shared),
      identity_(std::move(identity)),
      peer_(std::move(peer)),
      reader_(std::move(reader)),
      arrived_ns_(shared.streams.clock.MonotonicNs()),
      connection_changed_ns_(shared.streams.clock.MonotonicNs()),
      deferred_seen_(reader_->deferred_fetches()),
      written_seen_(reader_->write_position()) {
  buffer_fill_.Begin(connection_changed_ns_);
  RefreshFacts();
}

void TapWorker::Attach(TapSession& session, const TapGreeting& greeting) {
  session_ = &session;
  process_gone_ = false;
  gone_reported_ = false;
  connection_changed_ns_ = shared_.streams.clock.MonotonicNs();
  tap_state_ = greeting.state;
  tap_capture_ = greeting.capture_id;
  RefreshFacts();
  for (const auto& [id, capture] : captures_) capture->Reconnect(View());
  SettlePrecedence();
  ReportInfo();
}

void TapWorker::Detach() {
  session_ = nullptr;
  connection_changed_ns_ = shared_.streams.clock.MonotonicNs();
  // What the tap said in its last moments, without a message.
  if (reader_->state() == TapState::kExited) said_goodbye_ = true;
}

void TapWorker::OnReport(const TapReport& report) {
  tap_state_ = report.state;
  RefreshFacts();
  WorkerCapture* capture = FindCapture(report.capture_id);
  if (!report.command) {
    for (const auto& [id, each] : captures_) each->OnStateChange(report, View());
  } else if (*report.command == TapMessageType::kCollect) {
    if (capture != nullptr) capture->OnCollectAnswer(report, reader_->write_position());
  } else if (report.result == TapResult::kAnotherCapture) {
    tap_capture_ = report.capture_id;
    for (const auto& [id, each] : captures_) {
      if (id == report.capture_id) continue;
      if (*report.command == TapMessageType::kStop) {
        each->OnStopAnswer(reader_->write_position());
      } else {
        each->OnStartAnswer(report);
      }
    }
  } else if (*report.command == TapMessageType::kStop) {
    if (report.result == TapResult::kAccepted) return;  // kept for its time
    if (tap_capture_ == report.capture_id) tap_capture_ = CaptureId();
    if (capture != nullptr) capture->OnStopAnswer(reader_->write_position());
  } else {
    tap_capture_ = report.capture_id;
    if (capture != nullptr) capture->OnStartAnswer(report);
  }
  SettlePrecedence();
}

// A standing capture has the tap when no capture of a higher precedence wants it.
void TapWorker::SettlePrecedence() {
  for (const auto& [id, capture] : captures_) {
    const CaptureMode mode = capture->plan().spec.mode;
    if (!IsStanding(mode) || (!capture->WantsTap() && !capture->suspended())) continue;
    const CaptureId* other = nullptr;
    for (const auto& [other_id, each] : captures_) {
      const bool comes_first = Precedence(each->plan().spec.mode) > Precedence(mode);
      // One that has been told to stop has the tap until it says so.
      const bool has_it = tap_capture_ == other_id && !each->ended();
      if (comes_first && (has_it || (other == nullptr && each->WantsTap()))) other = &other_id;
    }
    if (other != nullptr) {
      capture->GiveWay(View(), *other);
    } else if (capture->suspended()) {
      capture->TakeBack();
    }
  }
  for (const auto& [id, capture] : captures_) capture->TryStart(View());
}

TapView TapWorker::View() const {
  const auto running = captures_.find(tap_capture_);
  const bool known = running != captures_.end() && running->second != nullptr;
  return {session_,
          tap_state_,
          tap_capture_,
          known ? std::optional(running->second->plan().spec.mode) : std::nullopt,
          reader_->position(),
          reader_->write_position(),
          facts_};
}

TapView TapWorker::ViewOf(const CaptureId& asking) const {
  TapView view = View();
  for (const auto& [id, each] : captures_) {
    if (id == asking || each == nullptr || !(each->armed() || each->WantsTap())) continue;
    const CaptureMode mode = each->plan().spec.mode;
    const bool is_first = !view.running_mode || view.running == asking ||
                          Precedence(mode) > Precedence(*view.running_mode);
    if (!is_first) continue;
    view.running = id;
    view.running_mode = mode;
  }
  return view;
}

void TapWorker::TellDue() { SettlePrecedence(); }

bool TapWorker::ReportExecutions() {
  bool any = false;
  for (const auto& [id, capture] : captures_) {
    if (!capture->plan().spec.by_execution() || capture->ended()) continue;
    capture->ReportCounts();
    any = true;
  }
  return any;
}

WorkerCapture* TapWorker::FindCapture(const CaptureId& capture_id) {
  const auto found = captures_.find(capture_id);
  return found == captures_.end() ? nullptr : found->second.get();
}

bool TapWorker::Matches(const CaptureSpec& spec) const {
  if (!spec.include_neuron || !Selects(spec, MakeInfo())) return false;
  if (spec.neuron_cores.empty() || facts_.visible_cores == 0) return true;
  return std::any_of(spec.neuron_cores.begin(), spec.neuron_cores.end(),
                     [this](uint32_t core) { return core < facts_.visible_cores; });
}

void TapWorker::Join(const CapturePlan& plan, const std::vector<StreamCursor>& cursors,
                     const Joining& joining) {
  auto& capture = captures_[plan.id];
  const bool is_new = capture == nullptr;
  if (is_new) {
    const bool counts_only = plan.spec.mode == CaptureMode::kPreview;
    capture = std::make_unique<WorkerCapture>(
        counts_only ? shared_.preview_streams : shared_.streams, shared_.listener, plan, identity_);
    TellRanks(capture->streams());
  }
  capture->Resume(cursors);
  // One that is stopping has no moment any more, but executions that are still to be read.
  capture->streams().SetExecutions(joining.executions);
  if (joining.moment) {
    capture->Begin(*joining.moment, joining.late, held_rings_);
  } else if (joining.arm) {
    capture->Arm(ViewOf(plan.id));
  }
  if (joining.confirmed) capture->Confirm();
  if (!joining.confirmed && tap_capture_ == plan.id) capture->OnRunning();
  if (is_new && broken_)
    capture->EndBecauseBroken(reader_->position(), "the buffer is not readable");
  SettlePrecedence();
}

void TapWorker::Stop(const CaptureId& capture_id, uint64_t stop_at_ns) {
  WorkerCapture* const capture = FindCapture(capture_id);
  if (capture == nullptr) return;
  capture->Stop(session_, stop_at_ns);
  SettlePrecedence();
}

void TapWorker::Forget(const CaptureId& capture_id) {
  const WorkerCapture* capture = FindCapture(capture_id);
  if (capture != nullptr && !capture->ended() && session_ != nullptr) {
    session_->SendStop(capture_id).IgnoreError();  // gone if it cannot be told
  }
  captures_.erase(capture_id);
  if (forgotten_.size() == kForgottenMax) forgotten_.erase(forgotten_.begin());
  forgotten_.insert(capture_id);
  SettlePrecedence();
}

bool TapWorker::CaptureFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  return found == captures_.end() || found->second->finished();
}

absl::StatusOr<bool> TapWorker::Read(size_t bytes) {
  if (broken_) return false;
  const uint64_t begin_ns = shared_.read_thread_cpu_ns();
  absl::StatusOr<bool> more = ReadRecords(bytes);
  cost_.AddAgent(shared_.read_thread_cpu_ns() - begin_ns);
  Govern();
  return more;
}

absl::StatusOr<bool> TapWorker::ReadRecords(size_t bytes) {
  const uint64_t begin = reader_->position();
  blocked_on_.reset();
  while (reader_->position() - begin < bytes) {
    const ChunkSink& sink = shared_.streams.sink;
    if (!sink.HasRoom(tap_capture_) || !sink.HasRoom(reading_)) {
      AgentSourceMetrics::Add(shared_.streams.metrics.reads_waiting);
      return false;
    }
    const absl::StatusOr<bool> read = ReadOne();
    if (!read.ok()) {
      broken_ = true;
      for (const auto& [id, capture] : captures_) {
        capture->EndBecauseBroken(reader_->position(), std::string(read.status().message()));
      }
      return read.status();
    }
    if (!*read) return false;
  }
  return true;
}

absl::StatusOr<bool> TapWorker::ReadOne() {
  TapRecord record;
  ASSIGN_OR_RETURN(const bool found, reader_->Next(shared_.buffer, record));
  if (!found) return false;
  if (!record.capture_id.empty() && MustWaitFor(record.capture_id)) {
    reader_->StepBack(record);
    blocked_on_ = record.capture_id;
    return false;
  }
  TakeRecord(record);
  return true;
}

// Records of a capture that nobody has told this agent of: it may be about to be, with the cursors
// that say what of them is stored.
bool TapWorker::MustWaitFor(const CaptureId& capture_id) const {
  if (captures_.contains(capture_id) || forgotten_.contains(capture_id)) return false;
  const uint64_t now_ns = shared_.streams.clock.MonotonicNs();
  for (const auto& [id, capture] : captures_) {
    if (now_ns - capture->joined_ns() >= kStrangerPatienceNs) return false;
  }
  return !process_gone_ || now_ns - connection_changed_ns_ < kDeadRecordsPatienceNs;
}

void TapWorker::TakeRecord(const TapRecord& record) {
  reading_ = record.capture_id;
  const auto type = static_cast<TapRecordType>(record.type);
  if (type == TapRecordType::kLifecycle) {
    TapLifecycle lifecycle = {};
    std::memcpy(&lifecycle, record.payload, std::min(sizeof lifecycle, record.payload_bytes));
    if (lifecycle.event == static_cast<uint32_t>(TapLifecycleEvent::kExit)) said_goodbye_ = true;
    return;
  }
  WorkerCapture* const capture = FindCapture(record.capture_id);
  if (capture == nullptr) {
    AgentSourceMetrics::Add(shared_.streams.metrics.records_unknown);
    return;
  }
  const bool is_edge = type == TapRecordType::kTraceStarted || type == TapRecordType::kTraceStopped;
  if (is_edge && shared_.watch != nullptr) shared_.watch->OnTraceEdge(identity_);
  switch (type) {
    case TapRecordType::kFetchDocument:
      return TakeDocument(record, *capture);
    case TapRecordType::kTraceStarted:
      if (capture->plan().spec.mode == CaptureMode::kFlightRecorder) {
        held_rings_.BeginTrace(record.host_realtime_ns);
      }
      return capture->OnTraceStarted(record, facts_);
    case TapRecordType::kTraceStopped:
      return capture->OnTraceStopped(record);
    case TapRecordType::kLoss:
      return TakeTapLoss(record, *capture);
    default:
      AgentSourceMetrics::Add(shared_.streams.metrics.records_unknown);
  }
}

void TapWorker::TakeDocument(const TapRecord& record, WorkerCapture& capture) {
  AgentSourceMetrics& metrics = shared_.streams.metrics;
  CaptureStreams& streams = capture.streams();
  capture.OnDocument();
  streams.BeginDocument(record);
  const auto decode = [&](NrtEventSink& sink) {
    return shared_.decoder.Decode(record.payload, record.payload_bytes, record.host_realtime_ns,
                                  sink);
  };
  NrtDecodeOutcome outcome;
  if (IsWatched(record, capture)) {
    WatchedEvents both(*shared_.watch, streams);
    outcome = decode(both);
  } else {
    outcome = decode(streams);
  }
  streams.EndDocument(record, outcome);
  if (streams.TakeGidsChanged()) ranks_changed_ = true;
  AgentSourceMetrics::Add(metrics.documents);
  AgentSourceMetrics::Add(metrics.document_bytes, record.payload_bytes);
  AgentSourceMetrics::Add(metrics.events_decoded, outcome.events);
  AgentSourceMetrics::Add(metrics.document_bytes_repaired, outcome.repaired_bytes);
}

// What a snapshot holds has been over for a while; and of who is gone nothing more is said.
bool TapWorker::IsWatched(const TapRecord& record, const WorkerCapture& capture) {
  return shared_.watch != nullptr && !gone_reported_ &&
         capture.plan().spec.mode != CaptureMode::kSnapshot &&
         shared_.watch->BeginDocument(identity_, facts_.job, record.host_realtime_ns);
}

void TapWorker::TakeTapLoss(const TapRecord& record, WorkerCapture& capture) {
  TapLoss loss = {};
  std::memcpy(&loss, record.payload, std::min(sizeof loss, record.payload_bytes));
  capture.streams().TakeTapLoss(record, loss);
}

bool TapWorker::done() const {
  if (!process_gone_ && !broken_) return false;
  if (session_ != nullptr) return false;
  if (!broken_ && reader_->HasMore()) return false;
  return std::all_of(captures_.begin(), captures_.end(),
                     [](const auto& entry) { return entry.second->finished(); });
}

}  // namespace neurontrace
