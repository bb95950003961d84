// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/pftrace_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// How it works: the first pass over a batch gives each record its track and adds the ends of spans
// to PendingEnds. Then arrows are placed on begins and ends that are still to be written. The
// second pass writes begins and instants, and before each of them everything else that is due up to
// its time. So the main sequence is in the order of time, and its packets need only differences.

using perfetto::EventType;

// The ids of arrows that share none with others begin here. FrameworkArrows counts from 1, and the
// ids of derived arrows begin at 1 << 49.
constexpr uint64_t kPairFlows = uint64_t{1} << 47;

// Adds a key and a text to the message TraceAttributes.
void AddAttribute(protozero::pbf_writer& attributes, std::string_view key, std::string_view value) {
  namespace fields = perfetto::attributes;
  protozero::pbf_writer attribute(attributes, fields::kAttribute);
  attribute.add_string(fields::kKey, key.data(), key.size());
  attribute.add_string(fields::kStringValue, value.data(), value.size());
}

// A larger certificate is only in the trace's attributes.
constexpr size_t kCertificateArgumentBytesMax = 256u << 10;

}  // namespace

// The order of the members matters: each refers to those that were initialised before.
PftraceExporter::PftraceExporter(Options options, ByteSink& sink)
    : RowExporter(options.grouping, options.no_flows),
      options_(std::move(options)),
      out_(sink, interner_, options_.compresses_packets),
      tracks_(options_.grouping, rows_, out_),
      arguments_(options_.arguments, interner_),
      counters_(tracks_, out_) {}

// The trace begins with its attributes, then all tracks that are known beforehand.
absl::Status PftraceExporter::Begin(const TimelineHeader& header) {
  BeginRows(header);
  is_hardware_only_ = header.filter->event_types.selects_only_hardware();
  arguments_.Begin(header);
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  losses_ = TraceLosses(header);
  uint64_t begin_ns = header.begin_ns;
  if (!losses_.empty()) begin_ns = std::min(begin_ns, losses_.front().at_ns);
  // The certificate and the warnings must be inside the window that the file shows.
  head_ns_ = std::clamp(begin_ns, header.filter->window_start_ns,
                        std::max(header.filter->window_start_ns, header.filter->window_end_ns - 1));
  out_.Begin(begin_ns);
  WriteTraceAttributes(clocks);
  tracks_.Begin(header);
  clocks_.Begin(header, clocks, tracks_);
  derivation_.emplace(header, !options_.no_flows, !options_.no_verdicts);
  derived_.emplace(header, derivation_->bin_ns(), tracks_, out_);
  return out_.Flush();
}

// The derivation itself runs without the lock, so that Write waits only for a move of the result.
void PftraceExporter::Prepare(const TimelineBatch& batch) {
  DerivedBatch found;
  {
    const MutexLock lock(prepared_mutex_);
    if (!spare_.empty()) {
      found = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  derivation_->Take(batch, found);
  const MutexLock lock(prepared_mutex_);
  prepared_.push_back(std::move(found));
}

// Uses the results of Prepare or, if nobody called it, derives now.
void PftraceExporter::AddDerived(const TimelineBatch& batch) {
  derived_batch_.Clear();
  {
    const MutexLock lock(prepared_mutex_);
    if (!prepared_.empty()) {
      spare_.push_back(std::move(derived_batch_));
      derived_batch_ = std::move(prepared_.front());
      prepared_.pop_front();
      return;
    }
  }
  derivation_->Take(batch, derived_batch_);
}

void PftraceExporter::StartBatch(const TimelineBatch& batch) {
  plans_.Sweep();
  stops_.StartBatch();
  begin_flows_.clear();
  batch_begin_ns_ = batch.begin_ns;
  AddDerived(batch);
  next_record_flow_ = 0;
  next_correlation_ = 0;
  // Records of the batch begin before its end, so that all ends before it are known after the first
  // pass.
  ends_.StartSlice(batch.end_ns);
}

uint32_t PftraceExporter::RowOf(const TimelineRecord& record) {
  const StreamKind kind = kind_of(record.stream);
  if (kind == StreamKind::kFramework) return tracks_.FrameworkRow(record);
  if (kind == StreamKind::kAnnotation) {
    return tracks_.NeuronRow(record.stream, record.thread_id, RowSource::kAnnotation, {});
  }
  const ShapePlan& plan = plans_.Structure(*record.shape);
  std::optional<uint64_t> core;
  if (plan.source == RowSource::kHardware && plan.core_key != ShapePlan::kNone) {
    core = record.values[plan.core_key];
  }
  // A file of hardware events alone has no rows of the runtime.
  const RowSource source = is_hardware_only_ ? RowSource::kHardware : plan.source;
  return tracks_.NeuronRow(record.stream, record.thread_id, source, core);
}

// Returns 1 for a span whose end is written separately, which can carry arrows, and else 0.
uint32_t PftraceExporter::Placed(const TimelineRecord& record, uint64_t number,
                                 Placement& placement) {
  placement.track = placement.lane == 0 ? tracks_.row(placement.row).lane_uuids.front()
                                        : tracks_.LaneUuid(placement.row, placement.lane);
  if (!placement.has_length) return 0;
  const bool stop_follows = (record.flags & kStopFollows) != 0;
  if (stop_follows) stops_.Expect(record);
  ends_.Add({.key = record.end_ns,
             .number = number,
             .span_id = stop_follows ? record.span_id : 0,
             .track_uuid = placement.track});
  return 1;
}

// A begin can carry flows only if its record is in the current batch.
PftraceExporter::TouchingFlows* PftraceExporter::FlowsOf(const ArrowSpan& span, bool at_end) {
  if (!at_end) return &begin_flows_[span.number];
  if (span.place == 0 || flows_at_ends_ >= kFlowsAtEndsMax) return nullptr;
  ++flows_at_ends_;
  return &end_flows_[span.number];
}

void PftraceExporter::PlaceArrows() {
  ends_.Seal();
  for (const ArrowFinding& finding : arrows_.findings()) {
    switch (finding.kind) {
      case ArrowFinding::Kind::kStart:
        PlaceFirst(finding.from, finding.id);
        break;
      case ArrowFinding::Kind::kWaiting:
        PlaceFirst(finding.to, finding.id);
        break;
      case ArrowFinding::Kind::kArrow:
        if (!PlaceArrow(finding)) ++arrows_not_drawn_;
        break;
    }
  }
  arrows_.findings().clear();
}

// Places the id on the first of the two slices that it joins. If that slice cannot carry it any
// more, no arrow with this id is drawn.
void PftraceExporter::PlaceFirst(const ArrowSpan& span, uint64_t id) {
  if (auto* flows = FlowsOf(span, span.is_past)) {
    flows->ids.push_back(id);
    return;
  }
  if (lost_first_.size() >= kFlowsAtEndsMax) lost_first_.erase(lost_first_.begin());
  lost_first_.insert(id);
}

// Perfetto follows one id from slice to slice in the order of the file, so that an arrow's start
// must be written before its ends. Otherwise the two slices get an id of their own, and Perfetto
// draws from the one that began first.
bool PftraceExporter::PlaceArrow(const ArrowFinding& arrow) {
  const ArrowSpan& from = arrow.from;
  const ArrowSpan& to = arrow.to;
  if (lost_first_.contains(arrow.waiting_id != 0 ? arrow.waiting_id : arrow.id)) return false;
  if (arrow.waiting_id != 0) {
    auto* const flows = FlowsOf(from, from.is_past);
    if (flows != nullptr) flows->ids.push_back(arrow.waiting_id);
    return flows != nullptr;
  }
  // Ends are written before begins of the same time, and of two ends that of the later span first.
  // A slice whose begin is written already can only be touched at its end.
  const uint64_t from_ns = from.is_past ? from.end_ns : from.start_ns;
  // Decides where the arrow can end so that its start precedes it in the file.
  const bool is_after_begin = from_ns < to.start_ns ||
                              (from_ns == to.start_ns && (from.is_past || from.number < to.number));
  const bool is_after_end =
      from_ns < to.end_ns || (from_ns == to.end_ns && from.is_past && to.number < from.number);
  for (const bool at_end : {false, true}) {
    if (at_end ? to.place == 0 || !is_after_end : to.is_past || !is_after_begin) continue;
    FlowsByNumber& flows = at_end ? end_flows_ : begin_flows_;
    const auto known = flows.find(to.number);
    if (known != flows.end() && known->second.incoming != 0) continue;
    auto* const touching = FlowsOf(to, at_end);
    if (touching != nullptr) touching->incoming = arrow.id;
    return touching != nullptr;
  }
  // Two slices that no id joins yet, or a third arrow that ends at this slice.
  const uint64_t id = kPairFlows + arrows_drawn_as_pairs_++;
  const bool is_from_written =
      from.is_past ? from_ns < batch_begin_ns_ : from.number < batch_number_;
  // FlowsOf may move the result of an earlier call, so the first one is used before the second
  // call.
  auto* const out = is_from_written ? nullptr : FlowsOf(from, from.is_past);
  if (out == nullptr) return false;
  out->ids.push_back(id);
  auto* const in = FlowsOf(to, to.is_past);
  if (in != nullptr) in->ids.push_back(id);
  return in != nullptr;
}

// Merges three sources by time: ends, losses with clock events, and the head.
void PftraceExporter::WriteUntil(uint64_t until_ns) {
  while (true) {
    const PendingEnds::End* end = ends_.next();
    if (end == nullptr || end->key > until_ns) break;
    // What is strictly before the end comes first; the end itself precedes other items of its time.
    if (end->key > 0 && WriteOther(end->key - 1)) continue;
    WriteEnd(*end);
    ends_.Pop();
  }
  while (WriteOther(until_ns)) {
  }
}

// Of a loss and a clock event at one time, the loss comes first.
bool PftraceExporter::WriteOther(uint64_t until_ns) {
  const uint64_t loss_ns = next_loss_ < losses_.size() ? losses_[next_loss_].at_ns : UINT64_MAX;
  const uint64_t clock_ns = clocks_.next_ns();
  const uint64_t next_ns = std::min(loss_ns, clock_ns);
  if (!is_head_written_ && head_ns_ <= until_ns && head_ns_ <= next_ns) {
    WriteHead();
    return true;
  }
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

// Forgets the flows afterwards: each begin and each end is written once.
size_t PftraceExporter::AddFlows(FlowsByNumber& flows, uint64_t number) {
  if (flows.empty()) return 0;
  const auto found = flows.find(number);
  if (found == flows.end()) return 0;
  const TouchingFlows& touching = found->second;
  const size_t count = touching.ids.size() + (touching.incoming != 0 ? 1 : 0);
  for (const uint64_t id : touching.ids) fields_.Flow(id);
  if (touching.incoming != 0) fields_.IncomingFlow(touching.incoming);
  flows.erase(found);
  return count;
}

// Attributes of the stop belong to the end event; Perfetto merges them into the slice.
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
  // The id of the span's start, by which a reader finds the slice.
  fields_.Uint(interner_.AnnotationName("stop_of_id"), span->id);
  arguments_.WriteStop(stop, plans_, fields_);
  out_.Event(stop.start_ns, fields_.bytes());
}

void PftraceExporter::WriteLoss(const LossInstant& loss) {
  out_.StartOverIfDue();
  fields_.Start(EventType::kInstant, tracks_.LossUuid(loss.stream));
  arguments_.WriteLoss(loss, fields_);
  out_.Event(loss.at_ns, fields_.bytes());
}

absl::Status PftraceExporter::WriteStop(const TimelineRecord& record) {
  if (stops_.awaited() > 0) WriteLateStop(record);
  return absl::OkStatus();
}

absl::Status PftraceExporter::WriteHostCounter(const TimelineRecord& record) {
  out_.StartOverIfDue();
  counters_.WriteHostSample(record);
  return absl::OkStatus();
}

absl::Status PftraceExporter::WriteCounter(const TimelineRecord& record) {
  out_.StartOverIfDue();
  counters_.Write(record);
  return absl::OkStatus();
}

// Ends at batch.end_ns belong to the next batch, whose begins may be at the same time.
absl::Status PftraceExporter::EndBatch(const TimelineBatch& batch) {
  WriteUntil(batch.end_ns - 1);
  derived_->Write(derived_batch_);
  return out_.FlushIfLarge();
}

absl::Status PftraceExporter::WriteEvent(const TimelineRecord& record, uint64_t number,
                                         const Placement& placement) {
  out_.StartOverIfDue();
  // The order of the fields: arrows, collectives, then the title and the arguments.
  const bool is_slice = record.kind == RecordKind::kSpan;
  fields_.Start(is_slice ? EventType::kBegin : EventType::kInstant, placement.track);
  AddFlows(begin_flows_, number);
  const uint64_t place = number - batch_number_;
  const std::vector<DerivedBatch::Flow>& flows = derived_batch_.flows;
  // Both lists are ordered by record: no search is needed.
  while (next_record_flow_ < flows.size() && flows[next_record_flow_].record <= place) {
    const DerivedBatch::Flow& touching = flows[next_record_flow_++];
    if (touching.record == place) fields_.Flow(touching.id);
  }
  const std::vector<DerivedBatch::Flow>& correlations = derived_batch_.correlations;
  while (next_correlation_ < correlations.size() &&
         correlations[next_correlation_].record <= place) {
    const DerivedBatch::Flow& part = correlations[next_correlation_++];
    if (part.record == place) fields_.CorrelationId(part.id);
  }
  arguments_.Write(record, tracks_.row(placement.row), plans_, placement.is_squeezed, fields_);
  out_.Event(record.start_ns, fields_.bytes());
  // A slice without a length or without a lane ends at once.
  if (is_slice && !placement.has_length) {
    fields_.Start(EventType::kEnd, placement.track);
    if ((record.flags & kStopFollows) != 0 && !AddStop(record.span_id, record.shape)) {
      stops_.Await(record, placement.track);
    }
    out_.Event(record.start_ns, fields_.bytes());
  }
  return absl::OkStatus();
}

absl::Status PftraceExporter::FinishAt(uint64_t end_ns, ExportSummary& summary) {
  end_ns_ = end_ns;
  // Writes what is still open: ends, losses and clock events beyond the last batch.
  ends_.StartSlice(UINT64_MAX);
  ends_.Seal();
  stops_.StartBatch();
  // The stops missed so far were in no batch, and the reader has warned about that.
  stops_missed_ = 0;
  WriteUntil(UINT64_MAX);
  derived_batch_.Clear();
  derivation_->Finish(derived_batch_);
  derived_->Write(derived_batch_);
  WarnOfStops(summary);
  if (derived_->left_out() > 0) {
    summary.warnings.push_back(fmt::format(
        "{} derived steps, collectives, samples or verdicts are not shown, because more overlap "
        "than a trace can show",
        derived_->left_out()));
  }
  if (squeezed_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans are shown without their length (argument squeezed), because more spans overlap "
        "on their row than a trace can show",
        squeezed_));
  }
  AddWarnings(derivation_->LinkWarnings(), summary);
  WriteWarnings(summary.warnings, out_.now_ns());
  // After WriteWarnings: real files have such arrows by the hundred, so they are not worth a mark
  // in the trace itself.
  AddWarnings(arrows_.Warnings(), summary);
  if (arrows_not_drawn_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} arrows of framework traces are not drawn, because more than two end at their slice, "
        "the slice is shown without its length, or {} arrows already wait for the ends of slices",
        arrows_not_drawn_, kFlowsAtEndsMax));
  }
  return out_.Flush();
}

void PftraceExporter::WarnOfStops(ExportSummary& summary) const {
  uint64_t count = stops_.beyond_limit();
  // If another part follows, it has the stops that are missing here. After the last part, nobody
  // knows them.
  if (end_ns_ != UINT64_MAX) count += stops_missed_ + stops_.awaited();
  if (count == 0) return;
  summary.warnings.push_back(fmt::format(
      "{} spans are shown without the attributes of their stops, because these are in a later part "
      "or too many spans waited for theirs",
      count));
}

// The keys are frozen by docs/formats/pftrace.md.
void PftraceExporter::WriteTraceAttributes(const ClockReport& clocks) {
  std::string body;
  protozero::pbf_writer attributes(body);
  AddAttribute(attributes, "io.neurontrace.version", NEURONTRACE_VERSION);
  AddAttribute(attributes, "io.neurontrace.capture_id", header_->capture->id.ToString());
  if (!header_->capture->name.empty()) {
    AddAttribute(attributes, "io.neurontrace.capture_name", header_->capture->name);
  }
  AddAttribute(attributes, "io.neurontrace.clock", clocks.timescale());
  AddAttribute(attributes, "io.neurontrace.clock.words", clocks.Describe());
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

// Also written as an event, because readers from before 2026 ignore trace attributes.
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

void PftraceExporter::WriteHead() {
  is_head_written_ = true;
  out_.StartOverIfDue();
  if (header_->certificate != nullptr) WriteCertificate(head_ns_);
  WriteWarnings(header_->warnings, head_ns_);
}

// Warnings concern the whole trace: those known at once are at its head, later ones at its end.
void PftraceExporter::WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns) {
  for (size_t i = warnings_written_; i < warnings.size(); ++i) {
    out_.StartOverIfDue();
    fields_.Start(EventType::kInstant, tracks_.WarningUuid());
    fields_.Name(interner_.EventName(warnings[i]));
    out_.Event(at_ns, fields_.bytes());
  }
  warnings_written_ = warnings.size();
}

}  // namespace neurontrace
