// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_source.h"

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

constexpr uint64_t kSourceTickNs = 20'000'000;
constexpr uint64_t kRestartNs = 1'000'000'000;
// As in TapWorker: a capture that nobody has announced by then is over.
constexpr uint64_t kForeignCaptureTimeoutNs = 1'000'000'000;
constexpr uint64_t kDeadRecordsPatienceNs = 300'000'000'000;

}  // namespace

SimSource::SimSource(SimWorld& world, Options options, Workers& workers, TaskRunner& runner,
                     ChunkSink& sink, SourceListener& listener)
    : world_(world),
      options_(std::move(options)),
      workers_(workers),
      clock_(world.clock),
      runner_(runner),
      listener_(listener),
      capture_context_{options_.agent_id, world.clock, sink, metrics_} {
  Tick();
}

SimSource::~SimSource() = default;

void SimSource::Tick() {
  Attach();
  for (const auto& known : known_) {
    const bool was_alive = !known->gone;
    if (was_alive && !known->worker->alive()) {
      known->gone = true;
      listener_.OnWorkerGone(known->worker->identity());
    }
    Read(*known);
    const bool drained = known->worker->RecordAt(known->position) == nullptr;
    for (const auto& [id, capture] : known->captures) {
      if (!known->gone) Command(*known, id, *capture);
      if (known->gone && drained) {
        capture->EndWithWorker(known->position, known->worker->sent_goodbye());
      }
      capture->Tick(known->position, drained);
      capture->ReportCounts();
    }
    Commit(*known);
  }
  for (auto& [id, capture] : captures_) {
    if (capture.stopping) EndOrphans(capture);
  }
  std::erase_if(known_, [this](const auto& known) {
    if (!IsDone(*known)) return false;
    // Nobody else holds a dead worker's memory.
    std::erase_if(workers_, [&](const auto& worker) { return worker.get() == known->worker; });
    return true;
  });
  runner_.PostDelayedTask(weak_tasks_.Wrap([this] { Tick(); }), kSourceTickNs);
}

void SimSource::Attach() {
  for (const auto& worker : workers_) {
    const bool is_known = std::any_of(known_.begin(), known_.end(), [&](const auto& known) {
      return known->worker == worker.get();
    });
    if (is_known || !worker->alive()) continue;
    auto known = std::make_unique<Known>();
    known->worker = worker.get();
    known->position = worker->committed();
    listener_.OnWorker({.identity = worker->identity(), .state = WorkerState::kIdle});
    known_.push_back(std::move(known));
    for (auto& [id, capture] : captures_) JoinIfMatching(*known_.back(), capture);
  }
}

// --- Reading -------------------------------------------------------------------------------------

void SimSource::Read(Known& known) {
  while (const SimWorker::Record* const record = known.worker->RecordAt(known.position)) {
    if (!capture_context_.sink.HasRoom(record->capture)) return;
    if (MustWaitFor(known, record->capture)) return;
    Take(known, *record);
    known.position = record->next_position;
  }
}

bool SimSource::MustWaitFor(const Known& known, const CaptureId& capture) const {
  if (known.captures.contains(capture) || known.forgotten.contains(capture)) return false;
  const uint64_t now_ns = clock_.MonotonicNs();
  for (const auto& [id, each] : known.captures) {
    if (now_ns - each->joined_ns() >= kForeignCaptureTimeoutNs) return false;
  }
  return true;
}

void SimSource::Take(Known& known, const SimWorker::Record& record) {
  const auto found = known.captures.find(record.capture);
  if (found == known.captures.end()) return;
  WorkerCapture& capture = *found->second;
  TapTraceStopped stopped = record.stopped;
  TapRecord taken{.position = record.position,
                  .next_position = record.next_position,
                  .type = static_cast<uint16_t>(record.type),
                  .nc_idx = record.core,
                  .host_realtime_ns = record.host_realtime_ns,
                  .capture_id = record.capture,
                  .payload = reinterpret_cast<char*>(&stopped),
                  .payload_bytes = sizeof stopped};
  switch (record.type) {
    case TapRecordType::kTraceStarted:
      return capture.OnTraceStarted(taken, WorkerFacts{});
    case TapRecordType::kTraceStopped:
      return capture.OnTraceStopped(taken);
    case TapRecordType::kLoss:
      return capture.streams().HandleTapLoss(taken, record.loss);
    default:
      capture.OnDocument();
      capture.streams().BeginDocument(taken);
      AddRows(capture, record);
      capture.streams().EndDocument(taken, {.events = record.rows.size()});
  }
}

void SimSource::AddRows(WorkerCapture& capture, const SimWorker::Record& record) {
  world_.trace.Log("{} reads rows {}..{} of core {}", options_.agent_id,
                   record.rows.front().nc_local_id, record.rows.back().nc_local_id, record.core);
  const CachedShape& shape =
      shapes_.Find({.event_type = "nc_exec_running",
                    .phase = Phase::kStart,
                    .present = FieldBit(Field::kId) | FieldBit(Field::kNcLocalId) |
                               FieldBit(Field::kNcIdx) | FieldBit(Field::kTimestamp)});
  for (const SimWorker::Row& row : record.rows) {
    capture.streams().OnEvent(
        {.nc_idx = record.core,
         .shape = &shape,
         .fields = {
             .timestamp_ns = row.timestamp_ns, .id = row.id, .nc_local_id = row.nc_local_id}});
  }
}

void SimSource::Commit(Known& known) {
  uint64_t target = known.position;
  for (const auto& [id, capture] : known.captures) {
    target = std::min(target, capture->streams().first_undurable_position().value_or(target));
  }
  known.worker->Commit(target);
}

// --- Captures ------------------------------------------------------------------------------------

// Sends a tap its orders and handles its answers; its socket is as quick as a call.
void SimSource::Command(Known& known, const CaptureId& id, WorkerCapture& capture) {
  SimWorker& worker = *known.worker;
  const auto own = captures_.find(id);
  if (own == captures_.end() || own->second.unconfirmed) return;
  if (own->second.stopping) {
    if (capture.ended() || !known.stop_sent.insert(id).second) return;
    capture.Stop(nullptr);
    worker.Stop(id);
    // Another one runs: then this one is not, and all of it is in the buffer.
    capture.OnStopAnswer(worker.write_position());
    return;
  }
  // A tap that records already, for the agent before this one, says so.
  if (worker.running() == id && known.start_answered.contains(id)) return;
  if (clock_.MonotonicNs() < known.start_at_ns[id]) return;
  known.start_at_ns[id] = clock_.MonotonicNs() + kRestartNs;
  // As StopForeignCaptures: a capture that this agent has not been given for a while is over.
  if (const auto running = worker.running();
      running && !captures_.contains(*running) &&
      (known.forgotten.contains(*running) ||
       clock_.MonotonicNs() - capture.joined_ns() >= kForeignCaptureTimeoutNs)) {
    worker.Stop(*running);
  }
  TapReport report;
  report.state = TapState::kStreaming;
  report.command = TapMessageType::kStart;
  report.capture_id = worker.Start(id);
  report.result = report.capture_id == id ? TapResult::kOk : TapResult::kAnotherCapture;
  if (report.capture_id.empty()) return;  // no room in its buffer: asked again
  if (report.result == TapResult::kOk) known.start_answered.insert(id);
  capture.OnStartAnswer(report);
}

void SimSource::JoinIfMatching(Known& known, Capture& capture) {
  const CaptureId& id = capture.plan.id;
  const bool has_streams = std::any_of(
      capture.cursors.begin(), capture.cursors.end(),
      [&](const StreamCursor& cursor) { return cursor.stream.worker == known.worker->identity(); });
  const bool records_it = known.worker->running() == id;
  if (!has_streams && !records_it && (capture.stopping || capture.unconfirmed)) return;
  if (capture.arming) {
    listener_.OnCaptureWorker({.capture_id = id,
                               .worker = known.worker->identity(),
                               .state = CaptureWorkerState::kArmed});
    return;
  }
  auto& joined = known.captures[id];
  if (joined == nullptr) {
    joined = std::make_unique<WorkerCapture>(capture_context_, listener_, capture.plan,
                                             known.worker->identity());
  }
  joined->Resume(capture.cursors);
  if (!capture.unconfirmed) joined->Confirm();
  if (capture.unconfirmed && records_it) joined->OnRunning();
}

void SimSource::ApplyOrder(const SourceOrder& order) {
  using Kind = SourceOrder::Kind;
  if (order.kind == Kind::kBegin) return Begin(order.capture_id);
  const bool is_new = !captures_.contains(order.capture_id);
  Capture& capture = captures_[order.capture_id];
  capture.plan.id = order.capture_id;
  capture.plan.spec = order.spec;
  capture.cursors = order.cursors;
  if (order.kind == Kind::kContinue) {
    capture.unconfirmed = true;
  } else {
    if (order.kind != Kind::kArm) {
      capture.arming = false;
    } else if (!capture.stopping && (is_new || capture.unconfirmed)) {
      capture.arming = true;  // one that is armed again, after its connection broke, waits on
    }
    capture.unconfirmed = false;
    if (capture.stopping) return;
  }
  for (const auto& known : known_) JoinIfMatching(*known, capture);
}

// Taps here are as quick as a call: the moment named is not waited for.
void SimSource::Begin(const CaptureId& capture_id) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end() || !found->second.arming) return;
  found->second.arming = false;
  if (found->second.stopping) return;
  for (const auto& known : known_) JoinIfMatching(*known, found->second);
}

void SimSource::Stop(const CaptureId& capture_id, uint64_t) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end() || found->second.stopping) return;
  found->second.stopping = true;
  for (const auto& known : known_) {
    const auto capture = known->captures.find(capture_id);
    if (capture != known->captures.end()) {
      capture->second->Stop(nullptr);
    } else if (found->second.arming) {
      listener_.OnCaptureWorker({.capture_id = capture_id,
                                 .worker = known->worker->identity(),
                                 .state = CaptureWorkerState::kComplete,
                                 .detail = "it was stopped before it began"});
    }
  }
  EndOrphans(found->second);
}

// As in TapSource: streams of workers that did not outlive the agent before this one.
void SimSource::EndOrphans(Capture& capture) {
  for (StreamCursor& cursor : capture.cursors) {
    const StreamIdentity& stream = cursor.stream;
    if (stream.kind != StreamKind::kNeuronCore || cursor.ended) continue;
    const bool is_here = std::any_of(known_.begin(), known_.end(), [&](const auto& known) {
      return known->worker->identity() == stream.worker;
    });
    if (is_here) continue;
    const StreamCursor resumed = cursor;
    cursor.ended = true;
    listener_.OnCaptureWorker({.capture_id = capture.plan.id,
                               .worker = stream.worker,
                               .state = CaptureWorkerState::kLost,
                               .detail = "the worker and the agent ended"});
    if (cursor.next_sequence == 0) continue;  // nothing of it is stored
    auto writer = std::make_unique<StreamWriter>(capture.plan.id, stream, clock_,
                                                 capture_context_.sink, metrics_);
    writer->Resume(resumed);
    writer->AddLoss(
        cursor.source_position,
        {.place = LossPlace::kTapBuffer,
         .reason = LossReason::kUnknown,
         .events_unknown = true,
         .detail = "the worker and the agent ended; the data in transit between them is lost"});
    writer->End(cursor.source_position);
    capture.orphans.push_back(std::move(writer));
  }
}

bool SimSource::IsFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return true;
  return found->second.stopping &&
         std::all_of(known_.begin(), known_.end(),
                     [&](const auto& known) {
                       const auto capture = known->captures.find(capture_id);
                       return capture == known->captures.end() || capture->second->finished();
                     }) &&
         std::all_of(found->second.orphans.begin(), found->second.orphans.end(),
                     [](const auto& orphan) { return orphan->finished(); });
}

void SimSource::Flush() {
  for (const auto& known : known_) {
    for (const auto& [id, capture] : known->captures) capture->Flush(known->position);
  }
}

void SimSource::Forget(const CaptureId& capture_id) {
  captures_.erase(capture_id);
  for (const auto& known : known_) {
    const auto capture = known->captures.find(capture_id);
    if (capture != known->captures.end() && !capture->second->ended() && known->worker->alive()) {
      known->worker->Stop(capture_id);
    }
    known->captures.erase(capture_id);
    known->forgotten.insert(capture_id);
  }
}

bool SimSource::IsDone(const Known& known) const {
  return known.gone && known.worker->RecordAt(known.position) == nullptr &&
         std::all_of(known.captures.begin(), known.captures.end(),
                     [](const auto& entry) { return entry.second->finished(); });
}

}  // namespace neurontrace
