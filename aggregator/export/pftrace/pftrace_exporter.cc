// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pftrace_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "aggregator/export/pftrace/loss_instants.h"
#include "base/clean_text.h"
#include "base/status.h"

namespace neurontrace {
namespace {

using perfetto::EventType;

void AddAttribute(protozero::pbf_writer& attributes, std::string_view key, std::string_view value) {
  namespace fields = perfetto::attributes;
  protozero::pbf_writer attribute(attributes, fields::kAttribute);
  attribute.add_string(fields::kKey, key.data(), key.size());
  attribute.add_string(fields::kStringValue, value.data(), value.size());
}

// A larger one stands only in the trace's attributes.
constexpr size_t kCertificateArgumentBytesMax = 256u << 10;

// Arrow ids of each kind stand apart: those of framework files count from 1, these from here.
constexpr uint64_t kLinkFlows = uint64_t{1} << 49;

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
  arguments_.Begin(header);
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  CollectLosses();
  uint64_t begin_ns = header.begin_ns;
  if (!losses_.empty()) begin_ns = std::min(begin_ns, losses_.front().at_ns);
  out_.Begin(begin_ns);
  WriteTraceAttributes(clocks);
  tracks_.Begin(header);
  clocks_.Begin(header, clocks, tracks_);
  if (header.certificate != nullptr) WriteCertificate(begin_ns);
  derived_.emplace(header, tracks_, out_);
  if (!options_.no_flows) links_.emplace(header.streams);
  return out_.Flush();
}

void PftraceExporter::WriteTraceAttributes(const ClockReport& clocks) {
  std::string body;
  protozero::pbf_writer attributes(body);
  AddAttribute(attributes, "io.neurontrace.version", NEURONTRACE_VERSION);
  AddAttribute(attributes, "io.neurontrace.capture_id", header_->capture->id.ToString());
  if (!header_->capture->name.empty()) {
    AddAttribute(attributes, "io.neurontrace.capture_name", header_->capture->name);
  }
  AddAttribute(attributes, "io.neurontrace.clock", clocks.timescale());
  AddAttribute(attributes, "io.neurontrace.clock.words", clocks.Words());
  if (!clocks.known().empty()) {
    AddAttribute(attributes, "io.neurontrace.clock.algorithm_version",
                 fmt::format("{}", clocks.algorithm_version()));
    AddAttribute(attributes, "io.neurontrace.clock.version", fmt::format("{}", clocks.version()));
    AddAttribute(attributes, "io.neurontrace.clock.final", clocks.is_final() ? "true" : "false");
    AddAttribute(attributes, "io.neurontrace.clock.instances",
                 fmt::format("{} of {}", clocks.known().size(), clocks.instances()));
  }
  if (const auto bound_ns = clocks.bound_max_ns()) {
    AddAttribute(attributes, "io.neurontrace.clock.bound_max_ns", fmt::format("{}", *bound_ns));
  }
  if (header_->certificate != nullptr) {
    AddAttribute(attributes, "io.neurontrace.verdict", header_->certificate->verdict);
    AddAttribute(attributes, "io.neurontrace.certificate", header_->certificate_json);
  }
  size_t number = 0;
  for (const std::string& warning : header_->warnings) {
    AddAttribute(attributes, fmt::format("io.neurontrace.warning.{}", number++), warning);
  }
  out_.TraceAttributes(body);
}

// Also as an event, because readers of before 2026 pass trace attributes over.
void PftraceExporter::WriteCertificate(uint64_t at_ns) {
  const Certificate& certificate = *header_->certificate;
  fields_.Start(EventType::kInstant, tracks_.WarningUuid());
  fields_.Name(interner_.EventName("certificate"));
  const auto name = [this](std::string_view text) { return interner_.AnnotationName(text); };
  fields_.String(name("verdict"), certificate.verdict);
  fields_.Bool(name("complete"), certificate.complete);
  fields_.Uint(name("expected"), certificate.account.expected);
  fields_.Uint(name("captured"), certificate.account.captured);
  fields_.Uint(name("stored"), certificate.account.stored);
  fields_.Uint(name("lost"), certificate.account.lost);
  fields_.Bool(name("lost_unknown"), certificate.account.lost_unknown);
  if (header_->certificate_json.size() <= kCertificateArgumentBytesMax) {
    fields_.String(name("certificate"), header_->certificate_json);
  }
  out_.Event(at_ns, fields_.bytes());
}

// Warnings are about the whole trace: those known at once stand where its first record does, later
// ones at its end.
void PftraceExporter::WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns) {
  for (size_t i = warnings_written_; i < warnings.size(); ++i) {
    out_.StartOverIfDue();
    fields_.Start(EventType::kInstant, tracks_.WarningUuid());
    fields_.Name(interner_.EventName(warnings[i]));
    out_.Event(at_ns, fields_.bytes());
  }
  warnings_written_ = warnings.size();
}

void PftraceExporter::CollectLosses() {
  const TimelineFilter& filter = *header_->filter;
  for (uint32_t stream = 0; stream < header_->streams.size(); ++stream) {
    const TimelineStream& about = header_->streams[stream];
    for (Loss& loss : LossInstants(about.description)) {
      const uint64_t raw_ns = loss.first_timestamp_ns != 0 ? loss.first_timestamp_ns
                                                           : about.description.first_timestamp_ns;
      const uint64_t at_ns = std::min(about.clock->ToReference(raw_ns), kTimeMaxNs);
      if (at_ns < filter.window_start_ns || at_ns >= filter.window_end_ns) continue;
      // One without any event and time of its own stands where the trace begins.
      losses_.push_back({raw_ns == 0 ? header_->begin_ns : at_ns, stream, std::move(loss)});
    }
  }
  std::stable_sort(losses_.begin(), losses_.end(),
                   [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
}

absl::Status PftraceExporter::Write(const TimelineBatch& batch) {
  plans_.Sweep();
  stops_.clear();
  begin_flows_.clear();
  wanted_.records.clear();
  wanted_.begin_ns = batch.begin_ns;
  wanted_.end_ns = batch.end_ns;
  placements_.assign(batch.records.size(), Placement{});
  ends_.StartSlice(batch.end_ns);
  for (size_t i = 0; i < batch.records.size(); ++i) {
    Prefetch(batch, i + kPrefetchAhead);
    const TimelineRecord& record = *batch.records[i];
    PlaceRecord(record, placements_[i]);
    if (links_) {
      for (const LinkPoint& point : links_->Of(record)) {
        begin_flows_[batch_number_ + i].push_back(kLinkFlows + point.id);
      }
    }
    if (derived_->Wants(*record.shape)) NoteWanted(*batch.records[i], placements_[i]);
    if (placements_[i].is_span) {
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
  derived_->Take(wanted_);
  batch_number_ += batch.records.size();
  batch_records_placed_ = 0;
  return out_.FlushIfLarge();
}

void PftraceExporter::NoteWanted(TimelineRecord& record, Placement& placement) {
  wanted_.records.push_back(&record);
  const uint64_t flow = derived_->FlowOf(record);
  if (!options_.no_flows) placement.flow = flow;
}

uint32_t PftraceExporter::RowOf(const TimelineRecord& record, const ShapePlan& plan) {
  if (header_->streams[record.stream].description.identity.kind == StreamKind::kFramework) {
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
    stops_[record.span_id] = &record;
    return;
  }
  if (header_->streams[record.stream].description.identity.kind == StreamKind::kHost) {
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
  } else if (number != 0 && !is_at_point) {
    end_flows_[number].push_back(id);
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

void PftraceExporter::AddFlows(absl::flat_hash_map<uint64_t, std::vector<uint64_t>>& flows,
                               uint64_t number) {
  if (flows.empty()) return;
  const auto found = flows.find(number);
  if (found == flows.end()) return;
  for (const uint64_t id : found->second) fields_.Flow(id);
  flows.erase(found);
}

void PftraceExporter::WriteEnd(const PendingEnds::End& end) {
  out_.StartOverIfDue();
  fields_.Start(EventType::kEnd, end.track_uuid);
  AddFlows(end_flows_, end.number);
  if (end.span_id != 0) AddStop(end.span_id);
  out_.Event(end.key, fields_.bytes());
}

void PftraceExporter::AddStop(uint64_t span_id) {
  if (const auto stop = stops_.find(span_id); stop != stops_.end()) {
    arguments_.WriteStop(*stop->second, plans_, fields_);
  }
}

void PftraceExporter::WriteLoss(const LossInstant& loss) {
  out_.StartOverIfDue();
  fields_.Start(EventType::kInstant, tracks_.LossUuid(loss.stream));
  arguments_.WriteLoss(loss.loss, fields_);
  out_.Event(loss.at_ns, fields_.bytes());
}

void PftraceExporter::WriteRecord(const TimelineRecord& record, const Placement& placement,
                                  uint64_t number) {
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
  if (placement.flow != 0) fields_.Flow(placement.flow);
  arguments_.Write(record, tracks_.row(placement.row), plans_, placement.is_squeezed, fields_);
  out_.Event(record.start_ns, fields_.bytes());
  if (is_slice && !placement.is_span) {
    fields_.Start(EventType::kEnd, placement.track_uuid);
    if ((record.flags & kStopFollows) != 0) AddStop(record.span_id);
    out_.Event(record.start_ns, fields_.bytes());
  }
}

absl::Status PftraceExporter::FinishAt(uint64_t end_ns, ExportSummary& summary) {
  end_ns_ = end_ns;
  ends_.StartSlice(UINT64_MAX);
  ends_.Seal();
  stops_.clear();
  WriteUntil(UINT64_MAX);
  derived_->Finish();
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
  if (links_) {
    for (const auto& warning : links_->counts().Warnings()) summary.warnings.push_back(warning);
  }
  WriteWarnings(summary.warnings, out_.now_ns());
  // Real files have such arrows by the hundred: no flaw of the trace.
  if (flows_.orphan_ends() > 0) {
    summary.warnings.push_back(fmt::format("{} of {} arrow ends in framework traces have no start",
                                           flows_.orphan_ends(), flows_.points()));
  }
  if (flows_without_slice_ > 0) {
    summary.warnings.push_back(
        fmt::format("{} of {} arrow ends in framework traces lie where their row has no slice and "
                    "are not drawn",
                    flows_without_slice_, flows_.points()));
  }
  return out_.Flush();
}

}  // namespace neurontrace
