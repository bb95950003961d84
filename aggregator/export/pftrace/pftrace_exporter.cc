// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pftrace_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

using perfetto::EventType;

// Records of many streams lie far apart: they are asked for before they are needed.
constexpr size_t kPrefetchAhead = 6;
void Prefetch(const TimelineBatch& batch, size_t i) {
  if (2 * kPrefetchAhead + i < batch.records.size()) {
    __builtin_prefetch(batch.records[i + kPrefetchAhead]);
    __builtin_prefetch(reinterpret_cast<const char*>(batch.records[i + kPrefetchAhead]) + 64);
    __builtin_prefetch(batch.records[i]->values);
  }
}

}  // namespace

PftraceExporter::PftraceExporter(Options options, ByteSink& sink)
    : options_(std::move(options)),
      out_(sink, interner_, options_.compresses_packets),
      tracks_(options_.grouping, out_),
      arguments_(options_.arguments, interner_),
      counters_(tracks_, out_) {}

absl::Status PftraceExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  for (const TimelineStream& stream : header.streams) {
    stream_kinds_.push_back(stream.description.identity.kind);
  }
  arguments_.Begin(header);
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  losses_ = TraceLosses(header);
  uint64_t begin_ns = header.begin_ns;
  if (!losses_.empty()) begin_ns = std::min(begin_ns, losses_.front().at_ns);
  out_.Begin(begin_ns);
  WriteTraceAttributes(clocks);
  tracks_.Begin(header);
  clocks_.Begin(header, clocks, tracks_);
  if (header.certificate != nullptr) WriteCertificate(begin_ns);
  derivation_.emplace(header, !options_.no_flows);
  derived_.emplace(header, derivation_->bin_ns(), tracks_, out_);
  return out_.Flush();
}

void PftraceExporter::Prepare(const TimelineBatch& batch) {
  DerivedBatch found;
  {
    const std::lock_guard lock(prepared_mutex_);
    if (!spare_.empty()) {
      found = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  derivation_->Take(batch, found);
  const std::lock_guard lock(prepared_mutex_);
  prepared_.push_back(std::move(found));
}

// What Prepare found, or, where nobody called it, what is found now.
void PftraceExporter::TakeDerived(const TimelineBatch& batch) {
  derived_batch_.Clear();
  {
    const std::lock_guard lock(prepared_mutex_);
    if (!prepared_.empty()) {
      spare_.push_back(std::move(derived_batch_));
      derived_batch_ = std::move(prepared_.front());
      prepared_.pop_front();
      return;
    }
  }
  derivation_->Take(batch, derived_batch_);
}

absl::Status PftraceExporter::Write(const TimelineBatch& batch) {
  plans_.Sweep();
  stops_.StartBatch();
  begin_flows_.clear();
  TakeDerived(batch);
  next_record_flow_ = 0;
  placements_.assign(batch.records.size(), Placement{});
  ends_.StartSlice(batch.end_ns);
  for (size_t i = 0; i < batch.records.size(); ++i) {
    Prefetch(batch, i + kPrefetchAhead);
    const TimelineRecord& record = *batch.records[i];
    PlaceRecord(record, placements_[i]);
    if (placements_[i].is_span) {
      if ((record.flags & kStopFollows) != 0) stops_.Expect(record);
      ends_.Add({.key = record.end_ns,
                 .number = batch_number_ + i,
                 .span_id = (record.flags & kStopFollows) != 0 ? record.span_id : 0,
                 .track_uuid = placements_[i].track_uuid});
    }
    ++batch_records_placed_;
  }
  ends_.Seal();
  if (warnings_written_ < header_->warnings.size() && !batch.records.empty()) {
    WriteUntil(batch.records.front()->start_ns);
    WriteWarnings(header_->warnings, batch.records.front()->start_ns);
  }
  for (size_t i = 0; i < batch.records.size(); ++i) {
    Prefetch(batch, i + kPrefetchAhead);
    WriteUntil(batch.records[i]->start_ns);
    WriteRecord(*batch.records[i], placements_[i], batch_number_ + i);
    RETURN_IF_ERROR(out_.FlushIfLarge());
  }
  WriteUntil(batch.end_ns - 1);
  derived_->Write(derived_batch_);
  batch_number_ += batch.records.size();
  batch_records_placed_ = 0;
  return out_.FlushIfLarge();
}

uint32_t PftraceExporter::RowOf(const TimelineRecord& record, const ShapePlan& plan) {
  if (stream_kinds_[record.stream] == StreamKind::kFramework) {
    return tracks_.FrameworkRow(record);
  }
  std::optional<uint64_t> core;
  if (plan.source == RowSource::kHardware && plan.core_key != ShapePlan::kNone) {
    core = record.values[plan.core_key];
  }
  return tracks_.NeuronRow(record.stream, record.thread_id, plan.source, core);
}

void PftraceExporter::PlaceRecord(const TimelineRecord& record, Placement& placement) {
  if (record.kind == RecordKind::kStopAttributes) {
    stops_.Add(record);
    return;
  }
  if (stream_kinds_[record.stream] == StreamKind::kHost) {
    placement.row = kHostRow;
    return;
  }
  placement.row = RowOf(record, plans_.Structure(*record.shape));
  TraceRow& row = tracks_.row(placement.row);
  placement.track_uuid = row.lane_uuids.front();
  const uint64_t number = batch_number_ + batch_records_placed_;
  switch (record.kind) {
    case RecordKind::kFlowStart:
    case RecordKind::kFlowStep:
    case RecordKind::kFlowEnd:
      PlaceFlow(record, placement);
      return;
    case RecordKind::kSpan:
      break;
    default:
      return;
  }
  if (record.end_ns == record.start_ns) {
    row.point_at_ns = record.start_ns;
    row.point_number = number;
    return;
  }
  std::optional<uint32_t> lane;
  if (ends_.size() < kPendingEndsMax) {
    lane = row.lanes.Place(record.start_ns, record.end_ns, number);
  }
  placement.is_span = lane.has_value();
  placement.is_squeezed = !lane.has_value();
  if (!lane) {
    ++squeezed_;
  } else if (*lane > 0) {
    placement.track_uuid = tracks_.LaneUuid(placement.row, *lane);
  }
}

// An arrow touches the slice that encloses its point on its row: at the begin of the slice, where
// that is still to be written, else at its end.
void PftraceExporter::PlaceFlow(const TimelineRecord& record, Placement& placement) {
  TraceRow& row = tracks_.row(placement.row);
  placement.row = kNoRow;
  if (options_.no_flows) return;
  const uint64_t id = flows_.Link(record);
  uint64_t number = 0;
  if (const Lanes::OpenSpan* span = row.lanes.Innermost(record.start_ns)) number = span->number;
  const bool is_at_point = row.point_at_ns == record.start_ns && row.point_number > number;
  if (is_at_point) number = row.point_number;
  if (number >= batch_number_) {
    begin_flows_[number].push_back(id);
  } else if (number != 0 && !is_at_point && flows_at_ends_ < kFlowsAtEndsMax) {
    end_flows_[number].push_back(id);
    ++flows_at_ends_;
  } else {
    ++flows_without_slice_;
  }
}

void PftraceExporter::WriteUntil(uint64_t until_ns) {
  while (true) {
    const PendingEnds::End* end = ends_.next();
    if (end == nullptr || end->key > until_ns) break;
    if (end->key > 0 && WriteOther(end->key - 1)) continue;
    WriteEnd(*end);
    ends_.Pop();
  }
  while (WriteOther(until_ns)) {
  }
}

bool PftraceExporter::WriteOther(uint64_t until_ns) {
  const uint64_t loss_ns = next_loss_ < losses_.size() ? losses_[next_loss_].at_ns : UINT64_MAX;
  const uint64_t clock_ns = clocks_.next_ns();
  const uint64_t next_ns = std::min(loss_ns, clock_ns);
  if (next_ns > until_ns || next_ns >= end_ns_) return false;
  if (next_loss_ < losses_.size() && loss_ns <= clock_ns) {
    WriteLoss(losses_[next_loss_++]);
    return true;
  }
  if (!clocks_.has_next()) return false;
  out_.StartOverIfDue();
  clocks_.Take(interner_, fields_);
  out_.Event(clock_ns, fields_.bytes());
  return true;
}

size_t PftraceExporter::AddFlows(FlowsByNumber& flows, uint64_t number) {
  if (flows.empty()) return 0;
  const auto found = flows.find(number);
  if (found == flows.end()) return 0;
  const size_t count = found->second.size();
  for (const uint64_t id : found->second) fields_.Flow(id);
  flows.erase(found);
  return count;
}

void PftraceExporter::WriteEnd(const PendingEnds::End& end) {
  out_.StartOverIfDue();
  fields_.Start(EventType::kEnd, end.track_uuid);
  flows_at_ends_ -= AddFlows(end_flows_, end.number);
  if (end.span_id != 0 && !AddStop(end.span_id, stops_.TakeStart(end.span_id))) ++stops_missed_;
  out_.Event(end.key, fields_.bytes());
}

void PftraceExporter::WriteLateStop(const TimelineRecord& stop) {
  const auto span = stops_.Take(stop.span_id);
  if (!span || stop.start().keys.empty()) return;
  out_.StartOverIfDue();
  fields_.Start(EventType::kInstant, span->track_uuid);
  fields_.Name(interner_.EventName(stop.start().event_type));
  fields_.Uint(interner_.AnnotationName("stop_of_id"), span->id);
  arguments_.WriteStop(stop, plans_, fields_);
  out_.Event(stop.start_ns, fields_.bytes());
}

void PftraceExporter::WriteLoss(const LossInstant& loss) {
  out_.StartOverIfDue();
  fields_.Start(EventType::kInstant, tracks_.LossUuid(loss.stream));
  arguments_.WriteLoss(loss.loss, fields_);
  out_.Event(loss.at_ns, fields_.bytes());
}

void PftraceExporter::WriteRecord(const TimelineRecord& record, const Placement& placement,
                                  uint64_t number) {
  if (record.kind == RecordKind::kStopAttributes && stops_.awaited() > 0) WriteLateStop(record);
  if (placement.row == kNoRow) return;  // said elsewhere
  out_.StartOverIfDue();
  if (placement.row == kHostRow) {
    counters_.WriteHostSample(header_->streams[record.stream].description.identity, record);
  } else if (record.kind == RecordKind::kCounter) {
    counters_.Write(record, placement.row);
  } else {
    WriteSlice(record, placement, number);
  }
}

void PftraceExporter::WriteSlice(const TimelineRecord& record, const Placement& placement,
                                 uint64_t number) {
  const bool is_slice = record.kind == RecordKind::kSpan;
  fields_.Start(is_slice ? EventType::kBegin : EventType::kInstant, placement.track_uuid);
  AddFlows(begin_flows_, number);
  const uint64_t place = number - batch_number_;
  const std::vector<DerivedBatch::Flow>& flows = derived_batch_.flows;
  while (next_record_flow_ < flows.size() && flows[next_record_flow_].record <= place) {
    const DerivedBatch::Flow& touching = flows[next_record_flow_++];
    if (touching.record == place) fields_.Flow(touching.id);
  }
  arguments_.Write(record, tracks_.row(placement.row), plans_, placement.is_squeezed, fields_);
  out_.Event(record.start_ns, fields_.bytes());
  if (is_slice && !placement.is_span) {
    fields_.Start(EventType::kEnd, placement.track_uuid);
    if ((record.flags & kStopFollows) != 0 && !AddStop(record.span_id, record.shape)) {
      stops_.Await(record, placement.track_uuid);
    }
    out_.Event(record.start_ns, fields_.bytes());
  }
}

absl::Status PftraceExporter::FinishAt(uint64_t end_ns, ExportSummary& summary) {
  end_ns_ = end_ns;
  ends_.StartSlice(UINT64_MAX);
  ends_.Seal();
  stops_.StartBatch();
  stops_missed_ = 0;  // so far they were in no batch: the reader has said why
  WriteUntil(UINT64_MAX);
  derived_batch_.Clear();
  derivation_->Finish(derived_batch_);
  derived_->Write(derived_batch_);
  WarnOfStops(summary);
  if (derived_->left_out() > 0) {
    summary.warnings.push_back(fmt::format(
        "{} derived steps, collectives or samples are not shown: more at one time than a trace can "
        "show",
        derived_->left_out()));
  }
  if (squeezed_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown without their length (argument squeezed): more overlap on their row "
        "than a trace can show",
        squeezed_));
  }
  for (std::string& warning : derivation_->LinkWarnings()) {
    summary.warnings.push_back(std::move(warning));
  }
  WriteWarnings(summary.warnings, out_.now_ns());
  // Real files have such arrows by the hundred: no flaw of the trace.
  if (flows_.orphan_ends() > 0) {
    summary.warnings.push_back(fmt::format("{} of {} arrow ends in framework traces have no start",
                                           flows_.orphan_ends(), flows_.points()));
  }
  if (flows_without_slice_ > 0) {
    summary.warnings.push_back(
        fmt::format("{} of {} arrow ends in framework traces lie where their row has no slice, or "
                    "one with a million of them, and are not drawn",
                    flows_without_slice_, flows_.points()));
  }
  return out_.Flush();
}

}  // namespace neurontrace
