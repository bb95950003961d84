// SPDX-License-Identifier: Apache-2.0
// The part of TapWorker that happens by the clock: facts, life and death, what is durable, and what
// is reported.
#include <algorithm>

#include "agent/source/neuron/tap_worker.h"
#include "base/clean_text.h"
#include "base/crc32c.h"

namespace neurontrace {
namespace {

// A tap whose connection broke comes back within this if its process lives.
constexpr uint64_t kReconnectPatienceNs = 12'000'000'000;
// Part of the ring that may be kept, though durable, so that an agent that comes back knows what
// the tap refused of no core in particular.
constexpr uint64_t kKeptRingPart = 8;
// The agent's note in the shared buffer (docs/formats/tap_buffer.md).
constexpr uint64_t kPlaceMask = 0xffff;
constexpr int kPlaceJobShift = 32;

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

void TapWorker::Flush() {
  if (broken_) return;
  for (const auto& [id, capture] : captures_) capture->Flush(reader_->position());
}

void TapWorker::Tick() {
  if (!broken_) {
    RefreshFacts();
    CheckLife();
    ObserveFilling();
    TellRefusedRecords();
  }
  StopStrangers();
  SettlePrecedence();
  const uint64_t begin_ns = shared_.read_thread_cpu_ns();
  const bool drained = broken_ || !reader_->HasMore();
  for (const auto& [id, capture] : captures_) {
    if (process_gone_ && drained) capture->EndBecauseGone(reader_->position(), said_goodbye_);
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
  stalled_ = std::exchange(deferred_seen_, deferred) != deferred;
  const uint64_t written = reader_->write_position();
  const uint64_t before = std::exchange(written_seen_, written);
  buffer_fill_.Took(clock.MonotonicNs(), written > before ? written - before : 0, true);
  const bool drained = !stalled_ && !reader_->HasMore();
  if (shared_.watch != nullptr) {
    shared_.watch->OnLookedAt(identity_, drained && session_ != nullptr);
  }
  for (const auto& [id, capture] : captures_) {
    capture->streams().ObserveRings(clock.RealtimeNs(), drained);
  }
}

// A trace's beginning or end, or a loss, that found no room: what is missing cannot be told. Of a
// capture that has not begun nothing is missing, nor of rings that are held.
void TapWorker::TellRefusedRecords() {
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
         .detail = "the shared buffer had no room for what the tap had to say of losses"});
  }
}

uint64_t TapWorker::NsToBufferFull() const {
  if (broken_ || process_gone_ || tap_state_ != TapState::kStreaming) return FillRate::kUnknownNs;
  return buffer_fill_.NsToFull(0, reader_->free_bytes(), limits::kHeadroomMaxNs);
}

void TapWorker::AddRingHeadroom(std::map<uint32_t, uint64_t>& nearest) const {
  if (broken_ || process_gone_) return;
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
  if (!facts.ok()) return;  // written just now, or nonsense: looked at again when it changes
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
  if (session_ != nullptr || process_gone_) return;
  if (reader_->state() == TapState::kExited) said_goodbye_ = true;
  // A claimed pid says nothing about whether its process lives: patience decides.
  process_gone_ =
      said_goodbye_ ||
      (peer_.pid_claimed
           ? shared_.streams.clock.MonotonicNs() - connection_changed_ns_ >= kReconnectPatienceNs
           : shared_.proc.StartTimeTicks(identity_.pid) != identity_.start_time_ticks);
  ranks_changed_ = ranks_changed_ || process_gone_;  // others may have been taken to run beside it
  const bool was_in_use =
      reader_->state() != TapState::kClosed && reader_->state() != TapState::kNotInitialised;
  if (process_gone_ && !said_goodbye_ && was_in_use && shared_.watch != nullptr) {
    shared_.watch->OnDied(identity_, facts_.job);
  }
}

// A capture that the tap runs and that no longer exists (an agent before this one had started it)
// is in the way of the ones that do.
void TapWorker::StopStrangers() {
  if (session_ == nullptr || tap_capture_.empty() || captures_.contains(tap_capture_)) return;
  const uint64_t now_ns = shared_.streams.clock.MonotonicNs();
  const bool in_the_way = forgotten_.contains(tap_capture_) ||
                          std::any_of(captures_.begin(), captures_.end(), [&](const auto& entry) {
                            return now_ns - entry.second->joined_ns() >= kStrangerPatienceNs;
                          });
  if (!in_the_way) return;
  session_->SendStop(tap_capture_).IgnoreError();  // asked again at the next answer
  tap_capture_ = CaptureId();
}

void TapWorker::Commit() {
  uint64_t target = reader_->position();
  for (const auto& [id, capture] : captures_) {
    target = std::min(target, capture->streams().first_undurable_position().value_or(target));
  }
  const uint64_t kept = reader_->ring_bytes() / kKeptRingPart;
  for (const auto& [id, capture] : captures_) {
    const auto unexplained = capture->streams().first_unexplained_position();
    if (unexplained && target - *unexplained <= kept) target = std::min(target, *unexplained);
  }
  reader_->Commit(target);
  // The aggregator may be away for hours, and until it has everything the worker is not done.
  const bool empty = process_gone_ && reader_->committed() == reader_->write_position();
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
  // A tap that is not connected has most likely ended: what takes its place is not beside it.
  if (process_gone_ || session_ == nullptr) facts.ended_ns = connection_changed_ns_;
  // The newest capture has the last word.
  for (const auto& [id, capture] : captures_) {
    for (const auto& [core, gid] : capture->streams().event_gids()) facts.event_gids[core] = gid;
  }
  return facts;
}

// The place is kept in the worker's own memory, so that the agent after this one finds it.
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
  for (const auto& [id, capture] : captures_) TellRanks(capture->streams());
}

void TapWorker::TellRanks(CaptureStreams& streams) const {
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
    info.detail = "the tap is in a state this agent does not know";
  }
  return info;
}

void TapWorker::ReportInfo() {
  if (gone_reported_) return;
  if (process_gone_ || broken_) {
    gone_reported_ = true;
    if (shared_.watch != nullptr) shared_.watch->OnGone(identity_);
    AgentSourceMetrics::Add(shared_.streams.metrics.workers_gone);
    if (reported_) shared_.listener.OnWorkerGone(identity_);
    return;
  }
  WorkerInfo info = MakeInfo();
  if (reported_ == info) return;
  ++info_version_;
  reported_ = std::move(info);
  shared_.listener.OnWorker(*reported_);
}

}  // namespace neurontrace
