// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture_streams.h"

#include <algorithm>

#include <fmt/format.h>

namespace neurontrace {
namespace {

// The tap looks at every core several times within half of this.
constexpr uint64_t kSilenceNs = 1'000'000'000;
constexpr uint8_t kNotSelected = 1;
constexpr uint8_t kSelected = 2;

}  // namespace

bool EventSelection::SelectsCore(uint32_t nc_idx) const {
  return cores.empty() || std::find(cores.begin(), cores.end(), nc_idx) != cores.end();
}

CaptureStreams::CaptureStreams(const StreamSurroundings& surroundings, const CaptureId& capture_id,
                               WorkerIdentity worker, EventSelection selection)
    : surroundings_(surroundings),
      capture_id_(capture_id),
      worker_(std::move(worker)),
      selection_(std::move(selection)) {}

void CaptureStreams::Resume(const std::vector<StreamCursor>& cursors) {
  for (const StreamCursor& cursor : cursors) {
    if (cursor.stream.kind != StreamKind::kNeuronCore || cursor.stream.worker != worker_) continue;
    if (cursor.next_sequence == 0) continue;  // nothing to continue
    const uint32_t slot = SlotOf(cursor.stream.nc_idx);
    if (cores_[slot] != nullptr) continue;  // goes on by itself
    cursors_.insert_or_assign(slot, cursor);
    CoreAt(slot);
  }
}

void CaptureStreams::SetRankEvidence(uint32_t nc_idx, const std::vector<RankEvidence>& evidence) {
  const uint32_t slot = SlotOf(nc_idx);
  if (evidence_[slot] == evidence) return;
  evidence_[slot] = evidence;
  if (cores_[slot] != nullptr) cores_[slot]->writer->SetRankEvidence(evidence);
}

CaptureStreams::Core& CaptureStreams::CoreAt(uint32_t slot) {
  auto& core = cores_[slot];
  if (core != nullptr) return *core;
  core = std::make_unique<Core>();
  ++stream_count_;
  const StreamIdentity stream{
      .agent_id = surroundings_.agent_id,
      .worker = worker_,
      .kind = StreamKind::kNeuronCore,
      .nc_idx = slot < limits::kCoresPerWorkerMax ? slot : limits::kNoNcIdx,
  };
  core->writer = std::make_unique<StreamWriter>(capture_id_, stream, surroundings_.clock,
                                                surroundings_.sink, surroundings_.metrics);
  if (const auto cursor = cursors_.find(slot); cursor != cursors_.end()) {
    core->writer->Resume(cursor->second);
    const bool begun_since = trace_begun_ && *trace_begun_ >= cursor->second.source_position;
    if (!begun_since) core->gaps.Resume(cursor->second.sequence_mark);
  }
  core->writer->SetRankEvidence(evidence_[slot]);
  if (trace_begun_) core->fill.emplace().Begin(trace_begun_ns_);
  return *core;
}

void CaptureStreams::BeginTrace(const TapRecord& record) {
  trace_begun_ = record.position;
  trace_begun_ns_ = record.host_realtime_ns;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    core->gaps.BeginTrace();
    core->writer->SetSequenceMark(record.position, core->gaps.mark());
    core->fill.emplace().Begin(trace_begun_ns_);
  }
}

void CaptureStreams::TakeTapLoss(const TapRecord& record, const TapLoss& loss) {
  AgentSourceMetrics& metrics = surroundings_.metrics;
  AgentSourceMetrics::Add(metrics.tap_fetches_deferred, loss.deferred_fetches);
  AgentSourceMetrics::Add(metrics.tap_fetches_failed, loss.failed_fetches);
  AgentSourceMetrics::Add(metrics.tap_documents_refused, loss.refused_documents);
  const uint64_t events = std::min(loss.refused_events, SequenceGaps::kHolesMax);
  if (record.nc_idx >= limits::kCoresPerWorkerMax) {
    if (refused_of_any_ == 0) refused_of_any_position_ = record.position;
    refused_of_any_ += events;
    return;
  }
  if (!selection_.SelectsCore(record.nc_idx)) return;
  if (events == 0 && loss.failed_fetches == 0) return;
  Core& core = CoreAt(record.nc_idx);
  core.fetch_failed = core.fetch_failed || loss.failed_fetches > 0;
  if (events == 0) return;
  core.first_timestamp_ns = loss.first_realtime_ns;
  core.last_timestamp_ns = loss.last_realtime_ns;
  core.writer->AddLoss(record.position, {.place = LossPlace::kTapBuffer,
                                         .reason = LossReason::kFull,
                                         .events = events,
                                         .first_timestamp_ns = loss.first_realtime_ns,
                                         .last_timestamp_ns = loss.last_realtime_ns});
  if (loss.refused_ids_end == 0) return;  // no numbers, so no hole either
  AddHoles(core, record.position,
           core.gaps.PassOver(loss.refused_ids_end, events, begins_with_zero_));
  core.writer->SetSequenceMark(record.position, core.gaps.mark());
}

void CaptureStreams::BeginDocument(const TapRecord& record) {
  position_ = record.position;
  touched_.clear();
}

CaptureStreams::Core& CaptureStreams::Touch(uint32_t nc_idx, const EventFields& fields,
                                            uint32_t present) {
  const uint32_t slot = SlotOf(nc_idx);
  Core& core = CoreAt(slot);
  if (!core.touched) {
    core.touched = true;
    core.first_timestamp_ns = fields.timestamp_ns;
    core.events = 0;
    touched_.push_back(slot);
  }
  core.last_timestamp_ns = fields.timestamp_ns;
  ++core.events;
  if ((present & FieldBit(Field::kNcLocalId)) != 0 && slot < limits::kCoresPerWorkerMax) {
    core.gaps.Observe(fields.nc_local_id);
    begins_with_zero_ = begins_with_zero_ || fields.nc_local_id == 0;
  }
  if ((present & FieldBit(Field::kWorkerGid)) != 0 && fields.worker_gid != core.gid &&
      fields.worker_gid >= 0 && slot < limits::kCoresPerWorkerMax) {
    core.gid = fields.worker_gid;
    event_gids_[slot] = core.gid;
    gids_changed_ = true;
  }
  return core;
}

bool CaptureStreams::Selected(const CachedShape& shape) {
  if (shape_generation_ != shape.generation) {
    selected_.clear();
    shape_generation_ = shape.generation;
  }
  if (selected_.size() <= shape.number) selected_.resize(shape.number + 1, 0);
  uint8_t& answer = selected_[shape.number];
  if (answer == 0) {
    answer = selection_.filter.Selects(shape.shape.event_type) ? kSelected : kNotSelected;
  }
  return answer == kSelected;
}

void CaptureStreams::OnEvent(const NrtEvent& event) {
  Core& core = Touch(event.nc_idx, event.fields, event.shape->shape.present);
  if (!Selected(*event.shape) ||
      (!selection_.cores.empty() && !selection_.SelectsCore(event.nc_idx))) {
    AgentSourceMetrics::Add(surroundings_.metrics.events_filtered);
    return;
  }
  core.writer->Append(position_, *event.shape, event.fields, event.values);
}

void CaptureStreams::OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                                  std::string_view why) {
  Touch(nc_idx, fields, present).writer->LoseEvent(position_, fields.timestamp_ns, why);
}

void CaptureStreams::EndDocument(const TapRecord& record, const NrtDecodeOutcome& outcome) {
  for (const uint32_t slot : touched_) {
    EndDocumentOf(*cores_[slot], record);
  }
  if (!outcome.fault) return;
  AgentSourceMetrics::Add(surroundings_.metrics.documents_malformed);
  CoreAt(SlotOf(record.nc_idx))
      .writer->AddLoss(
          record.position,
          {.place = LossPlace::kDecode,
           .reason = LossReason::kMalformed,
           .events_unknown = true,
           .first_timestamp_ns = record.host_realtime_ns,
           .last_timestamp_ns = record.host_realtime_ns,
           .detail = fmt::format("fetch document of {} bytes, at byte {}: {}", record.payload_bytes,
                                 outcome.fault->offset, outcome.fault->what)});
}

void CaptureStreams::EndDocumentOf(Core& core, const TapRecord& record) {
  const SequenceGaps::Holes holes = core.gaps.EndDocument(begins_with_zero_);
  AddHoles(core, record.position, holes);
  core.writer->SetSequenceMark(record.position, core.gaps.mark());
  core.touched = false;
  if (core.fill) {
    const bool emptied = (record.flags & kTapRecordFlagMore) == 0;
    core.fill->Took(record.host_realtime_ns, core.events + holes.events, emptied);
  } else {
    core.fill.emplace().Begin(record.host_realtime_ns);
  }
  core.fetched_ns = record.host_realtime_ns;
}

void CaptureStreams::AddHoles(Core& core, uint64_t position, const SequenceGaps::Holes& holes) {
  uint64_t events = holes.events;
  const bool fetch_failed = std::exchange(core.fetch_failed, false);
  const uint64_t by_tap = std::min(events, refused_of_any_);
  Loss loss{.place = LossPlace::kTapBuffer,
            .reason = LossReason::kFull,
            .events = by_tap,
            .first_timestamp_ns = core.first_timestamp_ns,
            .last_timestamp_ns = core.last_timestamp_ns};
  if (by_tap > 0) core.writer->AddLoss(position, loss);
  refused_of_any_ -= by_tap;
  events -= by_tap;
  if (events == 0 && !holes.unknown) return;
  loss.place = LossPlace::kRuntimeRing;
  loss.reason = fetch_failed ? LossReason::kUnknown : LossReason::kOverwritten;
  loss.events = events;
  loss.events_unknown = holes.unknown;
  if (fetch_failed) {
    loss.detail = "the runtime failed to answer a fetch before";
  } else if (holes.unknown) {
    loss.detail = "nc_local_id jumps too far to be counted";
  }
  core.writer->AddLoss(position, std::move(loss));
}

void CaptureStreams::AddLoss(uint64_t position, Loss loss) {
  CoreAt(SlotOf(limits::kNoNcIdx)).writer->AddLoss(position, std::move(loss));
}

void CaptureStreams::EndTrace(const TapRecord& record) {
  if (refused_of_any_ > 0) {
    AddLoss(record.position, {.place = LossPlace::kTapBuffer,
                              .reason = LossReason::kFull,
                              .events = refused_of_any_,
                              .first_timestamp_ns = record.host_realtime_ns,
                              .last_timestamp_ns = record.host_realtime_ns});
  }
  refused_of_any_ = 0;
  for (const auto& core : cores_) {
    if (core != nullptr) core->fill.reset();
  }
}

void CaptureStreams::ObserveRings(uint64_t now_ns, bool drained) {
  if (!drained || now_ns < kSilenceNs) return;
  for (const auto& core : cores_) {
    if (core == nullptr || !core->fill || now_ns - kSilenceNs < core->fetched_ns) continue;
    // A document that is on its way was fetched later than this.
    core->fill->Took(now_ns - kSilenceNs / 2, 0, true);
  }
}

void CaptureStreams::Tick(uint64_t position) {
  for (const auto& core : cores_) {
    if (core != nullptr) core->writer->Tick(position);
  }
}

void CaptureStreams::Flush(uint64_t position) {
  for (const auto& core : cores_) {
    if (core != nullptr) core->writer->Flush(position);
  }
}

void CaptureStreams::End(uint64_t position) {
  ended_ = true;
  // What is said of all cores goes before their ends: an agent that is killed between the two
  // leaves streams that the next one ends, and not ended ones of which nobody knows that more was
  // lost.
  if (cores_.back() != nullptr) cores_.back()->writer->End(position);
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    if (cores_[slot] != nullptr) cores_[slot]->writer->End(position);
  }
}

bool CaptureStreams::finished() const {
  return std::all_of(cores_.begin(), cores_.end(),
                     [](const auto& core) { return core == nullptr || core->writer->finished(); });
}

StreamWriter::Counts CaptureStreams::counts() const {
  StreamWriter::Counts sum;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    const StreamWriter::Counts& one = core->writer->counts();
    sum.read += one.read;
    sum.stored += one.stored;
    sum.lost += one.lost;
    sum.lost_unknown = sum.lost_unknown || one.lost_unknown;
    sum.given_up = sum.given_up || one.given_up;
  }
  return sum;
}

std::optional<uint64_t> CaptureStreams::first_undurable_position() const {
  std::optional<uint64_t> first;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    const std::optional<uint64_t> one = core->writer->first_undurable_position();
    if (one && (!first || *one < *first)) first = one;
  }
  return first;
}

std::optional<uint64_t> CaptureStreams::first_unexplained_position() const {
  if (ended_ || refused_of_any_ == 0) return std::nullopt;
  return refused_of_any_position_;
}

}  // namespace neurontrace
