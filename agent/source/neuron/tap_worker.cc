// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/tap_worker.h"

#include <time.h>

#include <algorithm>
#include <cstring>

#include "lib/base/clean_text.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/capture_selection.h"

namespace neurontrace {
namespace {

// How long a dead worker's records wait for the aggregator to announce their capture.
constexpr uint64_t kDeadRecordsPatienceNs = 300'000'000'000;
// Captures that are over and remembered; beyond, the oldest is dropped.
constexpr size_t kForgottenMax = 64;

// A tap that lost its connection comes back within this time if its process lives.
constexpr uint64_t kReconnectPatienceNs = 12'000'000'000;
// The part of the ring that may be kept although it is durable, so that an agent that restarts
// learns what the tap refused of no core in particular.
constexpr uint64_t kKeptRingPart = 8;
// The agent's note in the shared buffer (docs/formats/tap_buffer.md): one more than the place in
// the low bits, the checksum of the job's name in the high ones.
constexpr uint64_t kPlaceMask = 0xffff;
constexpr int kPlaceJobShift = 32;

// Returns the state that is reported; kUnspecified for one of a newer tap.
WorkerState ToWorkerState(TapState state) {
  switch (state) {
    case TapState::kNotInitialised:
      return WorkerState::kNotInitialised;
    case TapState::kIdle:
      return WorkerState::kIdle;
    case TapState::kStreaming:
    case TapState::kHolding:
      return WorkerState::kStreaming;
    case TapState::kBusyOtherProfiler:
      return WorkerState::kBusyOtherProfiler;
    case TapState::kRuntimeTooOld:
      return WorkerState::kRuntimeTooOld;
    case TapState::kClosed:
    case TapState::kExited:
      return WorkerState::kClosed;
    case TapState::kStartFailed:
      return WorkerState::kFailed;
  }
  return WorkerState::kUnspecified;
}

}  // namespace

uint64_t ReadThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

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

// Everything that was sent to the tap over an earlier connection counts as unknown to it.
void TapWorker::Attach(TapSession& session, const TapGreeting& greeting) {
  session_ = &session;
  process_exited_ = false;
  removal_reported_ = false;
  connection_changed_ns_ = shared_.streams.clock.MonotonicNs();
  tap_state_ = greeting.state;
  tap_capture_ = greeting.capture_id;
  RefreshFacts();
  // Each capture finds out which commands the tap needs again.
  for (const auto& [id, capture] : captures_) capture->Reconnect(View());
  SettlePrecedence();
  ReportInfo();
}

void TapWorker::Detach() {
  session_ = nullptr;
  connection_changed_ns_ = shared_.streams.clock.MonotonicNs();
  // The tap's last state is in the buffer, as an exiting process may not get to send a message.
  if (reader_->state() == TapState::kExited) sent_goodbye_ = true;
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

// A standing capture has the tap while no capture of a higher precedence wants it.
void TapWorker::SettlePrecedence() {
  for (const auto& [id, capture] : captures_) {
    const CaptureMode mode = capture->plan().spec.mode;
    if (!IsStanding(mode) || (!capture->WantsTap() && !capture->suspended())) continue;
    const CaptureId* other = nullptr;
    for (const auto& [other_id, each] : captures_) {
      const bool comes_first = Precedence(each->plan().spec.mode) > Precedence(mode);
      // A capture whose stop is under way keeps the tap until the tap confirms the stop.
      const bool has_it = tap_capture_ == other_id && !each->ended();
      if (comes_first && (has_it || (other == nullptr && each->WantsTap()))) other = &other_id;
    }
    if (other != nullptr) {
      capture->Suspend(View(), *other);
    } else if (capture->suspended()) {
      capture->EndSuspension();
    }
  }
  // Commands come last, when it is settled who has the tap.
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

void TapWorker::ReportDue() { SettlePrecedence(); }

bool TapWorker::ReportExecutions() {
  bool any = false;
  for (const auto& [id, capture] : captures_) {
    if (!capture->plan().spec.conditions.by_execution() || capture->ended()) continue;
    capture->ReportCounts();
    any = true;
  }
  return any;
}

WorkerCapture* TapWorker::FindCapture(const CaptureId& capture_id) {
  const auto found = captures_.find(capture_id);
  return found == captures_.end() ? nullptr : found->second.get();
}

// A worker whose number of cores is not known yet may have any core.
bool TapWorker::Matches(const CaptureSpec& spec) const {
  if (!spec.filter.include_neuron || !Selects(spec, MakeInfo())) return false;
  if (spec.selection.neuron_cores.empty() || facts_.visible_cores == 0) return true;
  return std::any_of(spec.selection.neuron_cores.begin(), spec.selection.neuron_cores.end(),
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
    ReportRanks(capture->streams());
  }
  // Before anything can begin: rows that the store has are passed over.
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
  // Nothing can be read for it, so it ends before it begins.
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

// The id is remembered, so that records which the ring still has of it are dropped instead of
// waiting.
void TapWorker::Forget(const CaptureId& capture_id) {
  const WorkerCapture* capture = FindCapture(capture_id);
  if (capture != nullptr && !capture->ended() && session_ != nullptr) {
    session_->SendStop(capture_id).IgnoreError();  // fails only if the tap is gone
  }
  captures_.erase(capture_id);
  if (forgotten_.size() == kForgottenMax) forgotten_.erase(forgotten_.begin());
  forgotten_.insert(capture_id);
  SettlePrecedence();
}

bool TapWorker::IsFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  return found == captures_.end() || found->second->finished();
}

// The processor time of the agent's thread is the agent's part of the worker's cost.
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
    // The ring is one sequence: a record of a full capture cannot be skipped without being lost.
    if (!sink.HasRoom(tap_capture_) || !sink.HasRoom(reading_)) {
      AgentSourceMetrics::Add(shared_.streams.metrics.reads_waiting);
      return false;
    }
    const absl::StatusOr<bool> read = ReadOne();
    if (!read.ok()) {
      // There is no way to find the next record after an invalid one.
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
    // It is read again when its capture is known.
    reader_->StepBack(record);
    blocked_on_ = record.capture_id;
    return false;
  }
  HandleRecord(record);
  return true;
}

// Records of an unknown capture wait: it may be announced in a moment, with the cursors that show
// what of them is stored. Reading them now would lose them.
bool TapWorker::MustWaitFor(const CaptureId& capture_id) const {
  if (captures_.contains(capture_id) || forgotten_.contains(capture_id)) return false;
  const uint64_t now_ns = shared_.streams.clock.MonotonicNs();
  for (const auto& [id, capture] : captures_) {
    if (now_ns - capture->joined_ns() >= kForeignCaptureTimeoutNs) return false;
  }
  return !process_exited_ || now_ns - connection_changed_ns_ < kDeadRecordsPatienceNs;
}

void TapWorker::HandleRecord(const TapRecord& record) {
  reading_ = record.capture_id;
  const auto type = static_cast<TapRecordType>(record.type);
  if (type == TapRecordType::kLifecycle) {
    // Shorter payloads of other versions leave the rest zero, here and in HandleTapLoss.
    TapLifecycle lifecycle = {};
    std::memcpy(&lifecycle, record.payload, std::min(sizeof lifecycle, record.payload_bytes));
    if (lifecycle.event == static_cast<uint32_t>(TapLifecycleEvent::kExit)) sent_goodbye_ = true;
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
      return HandleDocument(record, *capture);
    case TapRecordType::kTraceStarted:
      if (capture->plan().spec.mode == CaptureMode::kFlightRecorder) {
        held_rings_.BeginTrace(record.host_realtime_ns);
      }
      return capture->OnTraceStarted(record, facts_);
    case TapRecordType::kTraceStopped:
      return capture->OnTraceStopped(record);
    case TapRecordType::kLoss:
      return HandleTapLoss(record, *capture);
    default:
      AgentSourceMetrics::Add(shared_.streams.metrics.records_unknown);
  }
}

// The rows of a document reach the streams during Decode, between BeginDocument and EndDocument.
void TapWorker::HandleDocument(const TapRecord& record, WorkerCapture& capture) {
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
  // Events may state ranks (worker_gid), which concern all workers of the job.
  if (streams.TakeGidsChanged()) ranks_changed_ = true;
  AgentSourceMetrics::Add(metrics.documents);
  AgentSourceMetrics::Add(metrics.document_bytes, record.payload_bytes);
  AgentSourceMetrics::Add(metrics.events_decoded, outcome.events);
  AgentSourceMetrics::Add(metrics.document_bytes_repaired, outcome.repaired_bytes);
}

// Not watched are snapshots, whose events are long over, and workers that were reported as gone.
bool TapWorker::IsWatched(const TapRecord& record, const WorkerCapture& capture) {
  return shared_.watch != nullptr && !removal_reported_ &&
         capture.plan().spec.mode != CaptureMode::kSnapshot &&
         shared_.watch->BeginDocument(identity_, facts_.job, record.host_realtime_ns);
}

void TapWorker::HandleTapLoss(const TapRecord& record, WorkerCapture& capture) {
  TapLoss loss = {};
  std::memcpy(&loss, record.payload, std::min(sizeof loss, record.payload_bytes));
  capture.streams().HandleTapLoss(record, loss);
}

// Not before every capture is finished: streams would lose their receipts.
bool TapWorker::done() const {
  if (!process_exited_ && !broken_) return false;
  if (session_ != nullptr) return false;
  if (!broken_ && reader_->HasMore()) return false;
  return std::all_of(captures_.begin(), captures_.end(),
                     [](const auto& entry) { return entry.second->finished(); });
}

// --- By the clock: facts, life and death, what is durable and what is reported -------------------

void TapWorker::Flush() {
  if (broken_) return;
  for (const auto& [id, capture] : captures_) capture->Flush(reader_->position());
}

// The process is checked before records are judged as the last ones, and memory is released after
// the captures had their turn.
void TapWorker::Tick() {
  if (!broken_) {
    RefreshFacts();
    CheckLife();
    ObserveFilling();
    ReportRefusedRecords();
  }
  StopForeignCaptures();
  SettlePrecedence();
  const uint64_t begin_ns = shared_.read_thread_cpu_ns();
  // A process that is gone writes nothing more, so with an empty buffer its captures end.
  const bool drained = broken_ || !reader_->HasMore();
  for (const auto& [id, capture] : captures_) {
    if (process_exited_ && drained) capture->EndWithWorker(reader_->position(), sent_goodbye_);
    capture->Tick(reader_->position(), drained);
    capture->ReportCounts();
  }
  cost_.AddAgent(shared_.read_thread_cpu_ns() - begin_ns);
  if (!broken_) Commit();
  if (!broken_) Govern();
  ReportInfo();
}

void TapWorker::ObserveCost() {
  uint64_t bytes = 0;
  for (const auto& [id, capture] : captures_) bytes += capture->streams().counts().bytes;
  cost_.Observe(shared_.streams.clock.MonotonicNs(), reader_->drain_ns(), bytes);
}

void TapWorker::Govern() {
  ObserveCost();
  for (const auto& [id, capture] : captures_) capture->Govern(View(), cost_.core_ns());
}

TapWorker::Load TapWorker::load() const {
  Load load{.cost = cost_.recent(), .fidelity = {}};
  for (const auto& [id, capture] : captures_) {
    if (!capture->ended()) load.fidelity = std::max(load.fidelity, capture->fidelity());
  }
  return load;
}

void TapWorker::ObserveFilling() {
  const Clock& clock = shared_.streams.clock;
  const uint64_t deferred = reader_->deferred_fetches();
  // Fetches that the tap put off since the last tick: its buffer has no room for another document.
  stalled_ = std::exchange(deferred_seen_, deferred) != deferred;
  const uint64_t written = reader_->write_position();
  const uint64_t before = std::exchange(written_seen_, written);
  buffer_fill_.Took(clock.MonotonicNs(), written > before ? written - before : 0, true);
  // Only then does a core without events mean an idle core.
  const bool drained = !stalled_ && !reader_->HasMore();
  if (shared_.watch != nullptr) {
    shared_.watch->OnPolled(identity_, drained && session_ != nullptr);
  }
  for (const auto& [id, capture] : captures_) {
    capture->streams().ObserveRings(clock.RealtimeNs(), drained);
  }
}

// The beginning or end of a trace, or a loss, found no room in the buffer, so how much is missing
// is not known. Captures that have not begun, and held rings, miss nothing.
void TapWorker::ReportRefusedRecords() {
  const uint64_t refused = reader_->refused_control_records();
  if (std::exchange(control_refused_seen_, refused) == refused) return;
  for (const auto& [id, capture] : captures_) {
    if (!capture->has_recorded() || capture->ended()) continue;
    if (capture->plan().spec.mode == CaptureMode::kFlightRecorder) continue;
    capture->streams().AddLoss(
        reader_->position(),
        {.place = LossPlace::kTapBuffer,
         .reason = LossReason::kFull,
         .events_unknown = true,
         .detail = "the shared buffer had no room for the tap's loss reports"});
  }
}

// A tap that does not stream fills nothing.
uint64_t TapWorker::NsToBufferFull() const {
  if (broken_ || process_exited_ || tap_state_ != TapState::kStreaming) return FillRate::kUnknownNs;
  return buffer_fill_.NsToFull(0, reader_->free_bytes(), limits::kHeadroomMaxNs);
}

void TapWorker::AddRingHeadroom(std::map<uint32_t, uint64_t>& nearest) const {
  if (broken_ || process_exited_) return;
  const uint64_t now_ns = shared_.streams.clock.RealtimeNs();
  for (const auto& [id, capture] : captures_) {
    capture->streams().VisitRings(now_ns, stalled_, capture->ring_events(),
                                  [&](uint32_t nc_idx, uint64_t ns) {
                                    const auto [entry, is_new] = nearest.try_emplace(nc_idx, ns);
                                    if (!is_new) entry->second = std::min(entry->second, ns);
                                  });
  }
}

void TapWorker::RefreshFacts() {
  const uint64_t generation = reader_->facts_generation();
  if (generation == facts_generation_) return;
  absl::StatusOr<TapBufferReader::Facts> facts = reader_->ReadFacts();
  if (!facts.ok()) return;  // being written, or not valid: read again at the next call
  facts_generation_ = generation;
  WorkerFacts sorted = SortFacts(*facts);
  if (sorted == facts_) return;
  if (sorted.job != facts_.job) {  // places are of a job
    ranks_.first_node_core.reset();
    was_placeable_ = false;
  }
  facts_ = std::move(sorted);
  ranks_changed_ = true;
}

void TapWorker::CheckLife() {
  if (session_ != nullptr || process_exited_) return;
  if (reader_->state() == TapState::kExited) sent_goodbye_ = true;
  // A claimed pid does not show whether its process lives; only the time decides then.
  process_exited_ =
      sent_goodbye_ ||
      (peer_.pid_claimed
           ? shared_.streams.clock.MonotonicNs() - connection_changed_ns_ >= kReconnectPatienceNs
           : !shared_.proc.Lives(identity_.pid, identity_.start_time_ticks));
  ranks_changed_ =
      ranks_changed_ || process_exited_;  // others may have been taken to run beside it
  const bool was_in_use =
      reader_->state() != TapState::kClosed && reader_->state() != TapState::kNotInitialised;
  if (process_exited_ && !sent_goodbye_ && was_in_use && shared_.watch != nullptr) {
    shared_.watch->OnWorkerDied(identity_, facts_.job);
  }
}

// The tap may run a capture that no longer exists, begun under an earlier agent. It is stopped if
// it is in the way of one that does.
void TapWorker::StopForeignCaptures() {
  if (session_ == nullptr || tap_capture_.empty() || captures_.contains(tap_capture_)) return;
  const uint64_t now_ns = shared_.streams.clock.MonotonicNs();
  const bool in_the_way = forgotten_.contains(tap_capture_) ||
                          std::any_of(captures_.begin(), captures_.end(), [&](const auto& entry) {
                            return now_ns - entry.second->joined_ns() >= kForeignCaptureTimeoutNs;
                          });
  if (!in_the_way) return;
  session_->SendStop(tap_capture_).IgnoreError();  // asked again at the next answer
  tap_capture_ = CaptureId();
}

void TapWorker::Commit() {
  uint64_t target = reader_->position();
  for (const auto& [id, capture] : captures_) {
    // The ring is shared by all captures, so the slowest one decides.
    target = std::min(target, capture->streams().first_undurable_position().value_or(target));
  }
  // Bounded: keeping more would cost the tap its room.
  const uint64_t kept = reader_->ring_bytes() / kKeptRingPart;
  for (const auto& [id, capture] : captures_) {
    const auto unexplained = capture->streams().first_unexplained_position();
    if (unexplained && target - *unexplained <= kept) target = std::min(target, *unexplained);
  }
  reader_->Commit(target);
  // Memory is released before the worker is done, as the aggregator may be away for hours.
  const bool empty = process_exited_ && reader_->committed() == reader_->write_position();
  if (empty && !std::exchange(memory_released_, true)) reader_->ReleaseMemory();
}

RankFacts TapWorker::rank_facts() const {
  RankFacts facts{.pid = identity_.pid,
                  .start_time_ticks = identity_.start_time_ticks,
                  .ancestors = peer_.ancestors,
                  .user = peer_.user,
                  .container_id = peer_.pid_claimed ? std::string() : identity_.container_id,
                  .job = facts_.job,
                  .environment = facts_.environment,
                  .communicators = facts_.communicators,
                  .visible_cores = facts_.visible_cores,
                  .arrived_ns = arrived_ns_,
                  .first_node_core = RememberedPlace()};
  // A tap that is not connected has most likely ended, so a worker that takes its place does not
  // run beside it.
  if (process_exited_ || session_ == nullptr) facts.ended_ns = connection_changed_ns_;
  // The newest capture has the last word.
  for (const auto& [id, capture] : captures_) {
    for (const auto& [core, gid] : capture->streams().event_gids()) facts.event_gids[core] = gid;
  }
  return facts;
}

// The place is kept in the worker's own shared memory, so that the next agent finds it.
std::optional<uint32_t> TapWorker::RememberedPlace() const {
  if (ranks_.first_node_core) return ranks_.first_node_core;
  const uint64_t note = reader_->agent_note();
  const uint32_t place = note & kPlaceMask;
  if (place == 0 || note >> kPlaceJobShift != Crc32c(facts_.job.data(), facts_.job.size()))
    return std::nullopt;
  return place - 1;
}

void TapWorker::RememberPlace() {
  if (!ranks_.first_node_core || *ranks_.first_node_core >= kPlaceMask) return;
  reader_->SetAgentNote(uint64_t{Crc32c(facts_.job.data(), facts_.job.size())} << kPlaceJobShift |
                        (*ranks_.first_node_core + 1));
}

void TapWorker::SetRanks(const RankResolution& ranks, bool could_be_placed) {
  was_placeable_ = was_placeable_ || could_be_placed;
  ranks_ = ranks;
  RememberPlace();
  for (const auto& [id, capture] : captures_) ReportRanks(capture->streams());
}

void TapWorker::ReportRanks(CaptureStreams& streams) const {
  for (const CoreInfo& core : ranks_.cores) {
    std::vector<Remark> remarks;
    if (core.rank_evidence.empty()) {
      if (!ranks_.warnings.empty()) {
        remarks.push_back({RemarkKind::kRankRefused, 1, ranks_.warnings});
      }
    } else {
      const RankEvidence& best = core.rank_evidence.front();
      if (best.contradicted) {
        remarks.push_back({RemarkKind::kRankContradiction, 1, ranks_.contradictions});
      }
      if (best.guessed) remarks.push_back({RemarkKind::kRankGuessed, 1, {best.detail}});
    }
    streams.SetRankEvidence(core.nc_idx, core.rank_evidence, remarks);
  }
}

WorkerInfo TapWorker::MakeInfo() const {
  WorkerInfo info{.identity = identity_,
                  .state = ToWorkerState(tap_state_),
                  .detail = facts_.detail,
                  .command = ReportedCommand(facts_.command, shared_.with_arguments),
                  .job = facts_.job,
                  .cores = ranks_.cores,
                  .runtime_version = facts_.runtime_version,
                  .pid_claimed = peer_.pid_claimed,
                  .warnings = ranks_.warnings,
                  .event_types = facts_.event_types,
                  .job_facts = WithUser(facts_.job_facts, peer_.user),
                  .tap_capture = tap_capture_};
  WarnOfCutNames(facts_.environment, facts_.environment_left_out, info.warnings);
  if (pod_) SetPodFacts(*pod_, info.job_facts, info.warnings);
  if (info.state == WorkerState::kUnspecified) {
    info.state = WorkerState::kFailed;
    info.detail =
        "the tap reports a state that this agent does not know; use a tap and an agent of the same "
        "release";
  }
  return info;
}

void TapWorker::ReportInfo() {
  if (removal_reported_) return;
  if (process_exited_ || broken_) {
    // Once; later changes of a gone worker are not reported.
    removal_reported_ = true;
    if (shared_.watch != nullptr) shared_.watch->OnWorkerRemoved(identity_);
    AgentSourceMetrics::Add(shared_.streams.metrics.workers_removed);
    if (reported_) shared_.listener.OnWorkerGone(identity_);
    return;
  }
  WorkerInfo info = MakeInfo();
  if (reported_ == info) return;
  info_changed_ = true;
  reported_ = std::move(info);
  shared_.listener.OnWorker(*reported_);
}

}  // namespace neurontrace
