// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/capture_streams.h"

#include <fmt/format.h>

#include "agent/source/neuron/capture/execution_summary.h"
#include "agent/source/neuron/capture/fidelity_levels.h"
#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

// Values of ShapeNote::selected.
constexpr uint8_t kNotSelected = 1;
constexpr uint8_t kSelected = 2;
constexpr uint8_t kLeftOut = 3;  // by the level of fidelity

// The tap fetches every core several times within half of this, so silence is no delay.
constexpr uint64_t kSilenceNs = 1'000'000'000;
// How often a stream repeats what a budget leaves out while that lasts.
constexpr uint64_t kReportOmittedNs = 10'000'000'000;

}  // namespace

bool EventSelection::SelectsCore(uint32_t nc_idx) const {
  return cores.empty() || std::find(cores.begin(), cores.end(), nc_idx) != cores.end();
}

CaptureStreams::CaptureStreams(const StreamSetup& capture_context, const CaptureId& capture_id,
                               WorkerIdentity worker, EventSelection selection)
    : capture_context_(capture_context),
      capture_id_(capture_id),
      worker_(std::move(worker)),
      selection_(std::move(selection)) {}

// Streams of other workers in the list are not of interest. After End, the others are ended at
// once, so that the store learns of it.
void CaptureStreams::Resume(const std::vector<StreamCursor>& cursors) {
  for (const StreamCursor& cursor : cursors) {
    if (cursor.stream.kind != StreamKind::kNeuronCore || cursor.stream.worker != worker_) continue;
    if (cursor.next_sequence == 0) continue;  // nothing to continue
    const uint32_t slot = SlotOf(cursor.stream.nc_idx);
    if (cores_[slot] != nullptr) continue;  // continues by itself
    cursors_.insert_or_assign(slot, cursor);
    Core& core = CoreAt(slot);
    if (ended_) core.writer->End(std::max(end_position_, cursor.source_position));
  }
}

void CaptureStreams::SetRankEvidence(uint32_t nc_idx, const std::vector<RankEvidence>& evidence,
                                     const std::vector<Remark>& remarks) {
  const uint32_t slot = SlotOf(nc_idx);
  // Ranks are resolved again with every change on the node; most leave a core as it is.
  if (evidence_[slot] == evidence && rank_remarks_[slot] == remarks) return;
  evidence_[slot] = evidence;
  rank_remarks_[slot] = remarks;
  if (cores_[slot] == nullptr) return;
  ReportRank(slot, *cores_[slot]->writer);
  cores_[slot]->of_ranks = SelectsRanks(slot);
}

// Sets evidence and remarks of the core as they are now; a chunk that is closed later has them.
void CaptureStreams::ReportRank(uint32_t slot, StreamWriter& writer) const {
  writer.SetRankEvidence(evidence_[slot]);
  for (const RemarkKind kind :
       {RemarkKind::kRankContradiction, RemarkKind::kRankGuessed, RemarkKind::kRankRefused}) {
    const auto& remarks = rank_remarks_[slot];
    const auto found = std::find_if(remarks.begin(), remarks.end(),
                                    [kind](const Remark& remark) { return remark.kind == kind; });
    if (found == remarks.end()) {
      // Withdraws a remark that no longer holds.
      writer.SetRemark(kind, 0, {});
    } else {
      writer.SetRemark(kind, found->count, found->details);
    }
  }
}

// A core whose rank is not known is not selected by ranks.
bool CaptureStreams::SelectsRanks(uint32_t slot) const {
  const auto& ranges = selection_.worker_gids;
  if (ranges.empty()) return true;
  const RankEvidence* const best = BestEvidence(evidence_[slot]);
  return best != nullptr && std::any_of(ranges.begin(), ranges.end(), [best](const auto& range) {
           return range.contains(best->worker_gid);
         });
}

void CaptureStreams::SetExecutions(const ExecutionBounds& bounds) {
  executions_ = bounds;
  for (const auto& core : cores_) {
    if (core != nullptr) core->gate.SetBounds(bounds);
  }
}

ExecutionProgress CaptureStreams::executions() const {
  ExecutionSummary summary(executions_);
  // Cores that the capture does not select record no execution. The last slot has none of its own.
  std::for_each(cores_.begin(), cores_.end() - 1, [&summary](const auto& core) {
    if (core != nullptr && core->selected && core->of_ranks) summary.Add(core->gate);
  });
  return summary.progress();
}

// The last slot, that of no core, has no executions of its own.
bool CaptureStreams::AnyPassing() const {
  return !selection_.by_execution ||
         std::any_of(cores_.begin(), cores_.end() - 1,
                     [](const auto& core) { return core != nullptr && core->gate.passing(); });
}

CaptureStreams::Core& CaptureStreams::CoreAt(uint32_t slot) {
  auto& core = cores_[slot];
  // Streams are opened with their first event, so idle cores cost nothing.
  if (core != nullptr) return *core;
  const bool selected = slot == kSlots - 1 || selection_.SelectsCore(slot);
  core = std::make_unique<Core>(selection_.by_execution, selected);
  // Everything that was said about all cores, or about this one before it was open, is applied now.
  core->gate.SetBounds(executions_);
  core->of_ranks = SelectsRanks(slot);
  if (selection_.collected) core->gaps.BeginAnywhere();
  ++stream_count_;
  const StreamIdentity stream{
      .agent_id = capture_context_.agent_id,
      .worker = worker_,
      .kind = StreamKind::kNeuronCore,
      .nc_idx = slot < limits::kCoresPerWorkerMax ? slot : limits::kNoNcIdx,
  };
  core->writer = std::make_unique<StreamWriter>(capture_id_, stream, capture_context_.clock,
                                                capture_context_.sink, capture_context_.metrics);
  // The store has a part of the stream already, from an earlier run of this agent.
  if (const auto cursor = cursors_.find(slot); cursor != cursors_.end()) {
    core->writer->Resume(cursor->second);
    if (EventsRead(cursor->second) > 0) {
      core->gate.ResumeOpen();
      // It was among the selected ranks. Its own events may be the evidence, and they are yet to be
      // read.
      core->of_ranks = core->of_ranks || evidence_[slot].empty();
    }
    // A mark of an earlier trace says nothing about the numbers of this one.
    const bool begun_since = trace_begun_ && *trace_begun_ >= cursor->second.source_position;
    const uint64_t mark = cursor->second.sequence_mark;
    if (!begun_since && (mark > 0 || !selection_.collected)) core->gaps.Resume(mark);
  }
  ReportRank(slot, *core->writer);
  if (trace_begun_) core->fill.emplace().Begin(trace_begun_ns_);
  return *core;
}

void CaptureStreams::BeginTrace(const TapRecord& record) {
  if (ended_) return;
  trace_begun_ = record.position;
  reported_position_ = record.position;
  trace_begun_ns_ = record.host_realtime_ns;
  for (const auto& core : cores_) {
    if (core == nullptr) continue;
    selection_.collected ? core->gaps.BeginAnywhere() : core->gaps.BeginTrace();
    core->gate.BeginTrace();
    // The mark goes into cursors: after a restart the numbers continue in the right trace.
    core->writer->SetSequenceMark(record.position, core->gaps.mark());
    core->fill.emplace().Begin(trace_begun_ns_);
  }
}

void CaptureStreams::HandleTapLoss(const TapRecord& record, const TapLoss& loss) {
  AgentSourceMetrics& metrics = capture_context_.metrics;
  AgentSourceMetrics::Add(metrics.tap_fetches_deferred, loss.deferred_fetches);
  AgentSourceMetrics::Add(metrics.tap_fetches_failed, loss.failed_fetches);
  AgentSourceMetrics::Add(metrics.tap_documents_refused, loss.refused_documents);
  if (ended_) return;
  const uint64_t events = std::min(loss.refused_events, SequenceGaps::kHolesMax);
  // Of no particular core: kept until gaps show which cores lost them; see AddHoles.
  if (record.nc_idx >= limits::kCoresPerWorkerMax) {
    if (refused_of_any_ == 0) refused_of_any_position_ = record.position;
    refused_of_any_ += events;
    return;
  }
  if (!selection_.SelectsCore(record.nc_idx)) return;
  // Fetches that were only deferred lose nothing.
  if (events == 0 && loss.failed_fetches == 0) return;
  Core& core = CoreAt(record.nc_idx);
  core.fetch_failed = core.fetch_failed || loss.failed_fetches > 0;
  if (events == 0) return;
  // The tap counted them: a loss of a known number, whatever the sequence shows.
  core.first_timestamp_ns = loss.first_realtime_ns;
  core.last_timestamp_ns = loss.last_realtime_ns;
  ReportLoss(core, record.position,
             {.place = LossPlace::kTapBuffer,
              .reason = LossReason::kFull,
              .events = events,
              .first_timestamp_ns = loss.first_realtime_ns,
              .last_timestamp_ns = loss.last_realtime_ns});
  if (loss.refused_ids_end == 0) return;  // no numbers, so no hole either
  AddHoles(core, record.position,
           core.gaps.PassOver(loss.refused_ids_end, events, begins_with_zero_));
  if (core.gate.opened()) core.writer->SetSequenceMark(record.position, core.gaps.mark());
}

void CaptureStreams::BeginDocument(const TapRecord& record) {
  position_ = record.position;
  reported_position_ = position_;
  touched_.clear();
}

// Also called for events that are filtered later: gaps are found in the numbers of all events.
CaptureStreams::Core& CaptureStreams::Touch(uint32_t nc_idx, const EventFields& fields,
                                            uint32_t present) {
  const uint32_t slot = SlotOf(nc_idx);
  Core& core = CoreAt(slot);
  if (!core.touched) {
    core.touched = true;
    core.first_timestamp_ns = core.earliest_timestamp_ns = fields.timestamp_ns;
    core.lowest_id = UINT64_MAX;
    core.events = 0;
    touched_.push_back(slot);
  }
  core.last_timestamp_ns = fields.timestamp_ns;
  core.earliest_timestamp_ns = std::min(core.earliest_timestamp_ns, fields.timestamp_ns);
  ++core.events;
  if ((present & FieldBit(Field::kNcLocalId)) != 0 && slot < limits::kCoresPerWorkerMax) {
    core.gaps.Observe(fields.nc_local_id);
    core.lowest_id = std::min(core.lowest_id, fields.nc_local_id);
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

// The note is made once for each shape, and again after the fidelity changed, which clears all.
const CaptureStreams::ShapeNote& CaptureStreams::NoteOf(const CachedShape& shape) {
  // The cache was emptied, and numbers mean other shapes.
  if (shape_generation_ != shape.generation) {
    shape_notes_.clear();
    shape_generation_ = shape.generation;
  }
  if (shape_notes_.size() <= shape.number) shape_notes_.resize(shape.number + 1);
  ShapeNote& note = shape_notes_[shape.number];
  if (note.selected == 0) {
    const std::string_view type = shape.shape.event_type;
    const bool is_in = FilterOfFidelity(fidelity_.level).Selects(type);
    note.selected = !selection_.filter.Selects(type) ? kNotSelected : is_in ? kSelected : kLeftOut;
    note.execution = FindExecution(shape.shape);
  }
  return note;
}

bool CaptureStreams::Admits(Core& core, const NrtEvent& event, const ShapeNote& note) {
  if (SlotOf(event.nc_idx) == kSlots - 1) return AnyPassing();
  const Shape& shape = event.shape->shape;
  // Only captures by execution need the rest of the event.
  ExecutionGate::Event seen{.execution = ReadExecution(shape, event.values, note.execution)};
  if (!selection_.by_execution) return !seen.execution || core.gate.Admit(seen);
  seen.event_type = shape.event_type;
  seen.phase = shape.phase;
  if ((shape.present & FieldBit(Field::kTrackingId)) != 0) {
    seen.tracking_id = event.fields.tracking_id;
  }
  return core.gate.Admit(seen);
}

void CaptureStreams::OnEvent(const NrtEvent& event) {
  if (ended_) return AgentSourceMetrics::Add(capture_context_.metrics.events_after_end);
  Core& core = Touch(event.nc_idx, event.fields, event.shape->shape.present);
  const ShapeNote& note = NoteOf(*event.shape);
  // Before the filters: the gate has to see every event to know which executions there are.
  const bool admitted = Admits(core, event, note);
  if (note.selected == kNotSelected ||
      (!selection_.cores.empty() && !selection_.SelectsCore(event.nc_idx))) {
    AgentSourceMetrics::Add(capture_context_.metrics.events_filtered);
    return;
  }
  // Events outside the executions, ranks or window of the capture, and those omitted for its
  // budget, are rows that are passed over.
  const bool within = !window_ || window_->Contains(event.fields.timestamp_ns);
  if (!admitted || !core.of_ranks || !within || note.selected == kLeftOut) {
    // Counted as a row: an agent that reads the record again may leave out other rows.
    core.writer->PassOver(position_);
    AgentSourceMetrics& metrics = capture_context_.metrics;
    AgentSourceMetrics::Add(note.selected == kLeftOut ? metrics.events_left_out
                                                      : metrics.events_filtered);
    return;
  }
  core.writer->Append(position_, *event.shape, event.fields, event.values);
}

// An unfit event takes the place of a row, so that the numbers of other rows stay the same when the
// record is read again.
void CaptureStreams::OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                                  std::string_view why) {
  if (ended_) return AgentSourceMetrics::Add(capture_context_.metrics.events_after_end);
  Core& core = Touch(nc_idx, fields, present);
  if (!core.selected) return AgentSourceMetrics::Add(capture_context_.metrics.events_filtered);
  const bool passing = SlotOf(nc_idx) == kSlots - 1 ? AnyPassing() : core.gate.passing();
  const bool within = !window_ || window_->Contains(fields.timestamp_ns);
  // An unfit event that the capture does not select is no loss of it.
  if (!passing || !core.of_ranks || !within) return core.writer->PassOver(position_);
  core.writer->LoseEvent(position_, fields.timestamp_ns, why);
}

void CaptureStreams::EndDocument(const TapRecord& record, const NrtDecodeOutcome& outcome) {
  for (const uint32_t slot : touched_) {
    Core& core = *cores_[slot];
    EndDocumentOf(core, record);
    if (window_) {
      window_->HandleDocument(slot, core.lowest_id, core.earliest_timestamp_ns, core.gaps.mark(),
                              record.host_realtime_ns);
    }
  }
  if (!outcome.fault || ended_) return;
  AgentSourceMetrics::Add(capture_context_.metrics.documents_malformed);
  ReportLoss(
      CoreAt(SlotOf(record.nc_idx)), record.position,
      {.place = LossPlace::kDecode,
       .reason = LossReason::kMalformed,
       .events_unknown = true,
       .first_timestamp_ns = record.host_realtime_ns,
       .last_timestamp_ns = record.host_realtime_ns,
       .detail = fmt::format("fetch document of {} bytes, at byte {}: {}", record.payload_bytes,
                             outcome.fault->offset, outcome.fault->what)});
}

// The stream of no core has no gate of its own; it follows the other cores.
void CaptureStreams::ReportLoss(Core& core, uint64_t position, Loss loss) {
  if (!core.selected || !core.of_ranks) return;
  const bool told = &core == cores_.back().get() ? AnyPassing() : core.gate.TakeLoss(loss);
  if (told) core.writer->AddLoss(position, std::move(loss));
}

// Turns what the document lacks into losses, and adds it to the measurement of the core's ring.
void CaptureStreams::EndDocumentOf(Core& core, const TapRecord& record) {
  // Nothing shows where the numbers were before, so what is missing cannot be called lost.
  const bool blind = selection_.by_execution && !trace_begun_ && core.gaps.mark() == 0;
  const SequenceGaps::Holes holes = core.gaps.EndDocument(begins_with_zero_);
  if (!blind) AddHoles(core, record.position, holes);
  for (Loss& loss : core.gate.EndDocument()) core.writer->AddLoss(record.position, std::move(loss));
  if (core.gate.opened()) core.writer->SetSequenceMark(record.position, core.gaps.mark());
  core.touched = false;
  if (core.fill) {
    const bool emptied = (record.flags & kTapRecordFlagMore) == 0;
    core.fill->Took(record.host_realtime_ns, core.events + holes.events, emptied);
  } else {
    core.fill.emplace().Begin(record.host_realtime_ns);
  }
  core.fetched_ns = record.host_realtime_ns;
}

// In order of the evidence: the tap's own count, then a fetch that failed, then the ring.
void CaptureStreams::AddHoles(Core& core, uint64_t position, const SequenceGaps::Holes& holes) {
  uint64_t events = holes.events;
  // A failed fetch explains the gap better than an overwritten ring.
  const bool fetch_failed = std::exchange(core.fetch_failed, false);
  // Events that the tap refused explain a gap before an overwritten ring does.
  const uint64_t by_tap = std::min(events, refused_of_any_);
  Loss loss{.place = LossPlace::kTapBuffer,
            .reason = LossReason::kFull,
            .events = by_tap,
            .first_timestamp_ns = core.first_timestamp_ns,
            .last_timestamp_ns = core.last_timestamp_ns};
  if (by_tap > 0) ReportLoss(core, position, loss);
  refused_of_any_ -= by_tap;
  events -= by_tap;
  if (events == 0 && !holes.unknown) return;
  loss.place = LossPlace::kRuntimeRing;
  loss.reason = fetch_failed ? LossReason::kUnknown : LossReason::kOverwritten;
  loss.events = events;
  loss.events_unknown = holes.unknown;
  if (fetch_failed) {
    loss.detail = "an earlier fetch failed in the runtime";
  } else if (holes.unknown) {
    loss.detail = "nc_local_id jumps too far to count the missing events";
  }
  ReportLoss(core, position, std::move(loss));
}

void CaptureStreams::AddLoss(uint64_t position, Loss loss) {
  if (ended_) return;
  CoreAt(SlotOf(limits::kNoNcIdx)).writer->AddLoss(position, std::move(loss));
}

void CaptureStreams::AddSuspension(uint64_t position, const Suspension& suspension) {
  if (ended_) return;
  CoreAt(SlotOf(limits::kNoNcIdx)).writer->AddSuspension(position, suspension);
}

void CaptureStreams::EndTrace(const TapRecord& record) {
  if (ended_) return;
  if (refused_of_any_ > 0 && AnyPassing()) {
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

// --- Between records: losses, fidelity and reports -----------------------------------------------

// The losses of the level before are completed first, since they name what that level omitted.
void CaptureStreams::SetFidelity(FidelityNote note) {
  if (ended_) return;
  ReportOmitted(note.at_ns);
  left_out_since_ns_ = note.level > 0 ? note.at_ns : 0;
  shape_notes_.clear();
  fidelity_ = std::move(note);
  ++fidelity_changes_;
  AgentSourceMetrics::Add(capture_context_.metrics.fidelity_changes);
  ReportFidelity();
}

// Writes the note to each core that does not have it. A core that is new, or not begun, gets it
// when it is there.
void CaptureStreams::ReportFidelity() {
  if (fidelity_changes_ == 0 || !reported_position_ || ended_) return;
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    Core* const core = cores_[slot].get();
    if (core == nullptr || core->fidelity_reported == fidelity_changes_) continue;
    if (!core->gate.opened() || !core->of_ranks) continue;
    core->fidelity_reported = fidelity_changes_;
    AppendFidelity(*reported_position_, fidelity_, *core->writer);
  }
}

// Adds a loss of no events for the time since the last one, to each core that has a note.
void CaptureStreams::ReportOmitted(uint64_t now_ns) {
  if (left_out_since_ns_ == 0 || !reported_position_ || now_ns <= left_out_since_ns_) return;
  for (size_t slot = 0; slot + 1 < cores_.size(); ++slot) {
    Core* const core = cores_[slot].get();
    if (core == nullptr || core->fidelity_reported == 0) continue;
    core->writer->AddLoss(*reported_position_,
                          LeftOutFromTo(left_out_since_ns_, now_ns, fidelity_.words));
  }
  left_out_since_ns_ = now_ns;
}

// A core that sends nothing while the tap fetches has filled nothing; without this its rate would
// stay as it was.
void CaptureStreams::ObserveRings(uint64_t now_ns, bool drained) {
  if (!drained || now_ns < kSilenceNs) return;
  for (const auto& core : cores_) {
    if (core == nullptr || !core->fill || now_ns - kSilenceNs < core->fetched_ns) continue;
    // Half of the silence back: a document that is on its way was fetched later than this.
    core->fill->Took(now_ns - kSilenceNs / 2, 0, true);
  }
}

void CaptureStreams::Tick(uint64_t position) {
  ReportFidelity();
  const uint64_t now_ns = capture_context_.clock.RealtimeNs();
  if (left_out_since_ns_ != 0 && now_ns >= left_out_since_ns_ + kReportOmittedNs)
    ReportOmitted(now_ns);
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
  ReportOmitted(capture_context_.clock.RealtimeNs());
  ended_ = true;
  end_position_ = position;
  // Losses and suspensions that concern all cores are stored before the other streams end. If the
  // agent is killed in between, the next one ends the rest; the other order could leave only ended
  // streams, and losses that nobody knows of.
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
    sum.bytes += one.bytes;
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
