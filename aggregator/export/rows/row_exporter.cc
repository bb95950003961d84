// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/row_exporter.h"

#include <optional>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Records of many streams are far apart in memory: they are fetched this many records ahead.
constexpr size_t kPrefetchAhead = 12;

// Fetches a record, and, half that far ahead, its values, which the record itself points to. A hint
// only: it changes no result.
void Prefetch(const TimelineBatch& batch, size_t i) {
  if (kPrefetchAhead + kPrefetchAhead / 2 + i >= batch.records.size()) return;
  const TimelineRecord* const ahead = batch.records[i + kPrefetchAhead];
  __builtin_prefetch(ahead);
  __builtin_prefetch(reinterpret_cast<const char*>(ahead) + 64);
  __builtin_prefetch(batch.records[i + kPrefetchAhead / 2]->values);
}

}  // namespace

void RowExporter::BeginRows(const TimelineHeader& header) {
  header_ = &header;
  for (const TimelineStream& stream : header.streams) {
    stream_kinds_.push_back(stream.description.identity.kind);
  }
  rows_.Begin(header);
}

void RowExporter::AddWarnings(std::vector<std::string> warnings, ExportSummary& summary) {
  for (std::string& warning : warnings) summary.warnings.push_back(std::move(warning));
}

absl::Status RowExporter::Write(const TimelineBatch& batch) {
  StartBatch(batch);
  arrows_.StartBatch();
  // By the record's place in the batch, so that the second pass need not look anything up.
  placements_.assign(batch.records.size(), Placement{});
  for (size_t i = 0; i < batch.records.size(); ++i) {
    Prefetch(batch, i);
    PlaceRecord(*batch.records[i], batch_number_ + i, placements_[i]);
  }
  // Between the passes: a format may have to write an arrow with a span that comes before its end.
  arrows_.EndBatch();
  PlaceArrows();
  for (size_t i = 0; i < batch.records.size(); ++i) {
    Prefetch(batch, i);
    Advance(*batch.records[i]);
    RETURN_IF_ERROR(WriteRecord(*batch.records[i], batch_number_ + i, placements_[i]));
    RETURN_IF_ERROR(FlushIfLarge());
  }
  batch_number_ += batch.records.size();
  return EndBatch(batch);
}

// The first pass over one record: decides its row and its lane, and collects arrows. Requires that
// records come in the order of their starts, as Lanes demands.
void RowExporter::PlaceRecord(const TimelineRecord& record, uint64_t number, Placement& placement) {
  if (record.kind == RecordKind::kStopAttributes) return SeeStop(record);
  const StreamKind kind = kind_of(record.stream);
  if (kind == StreamKind::kHost || record.kind == RecordKind::kCounter) return;
  const uint32_t row = RowOf(record);
  switch (record.kind) {
    case RecordKind::kFlowStart:
    case RecordKind::kFlowStep:
    case RecordKind::kFlowEnd:
      if (!no_flows_) arrows_.AddPoint(row, record);
      return;
    default:
      break;
  }
  placement.row = row;
  if (record.kind == RecordKind::kSpan && record.end_ns > record.start_ns) {
    std::optional<uint32_t> lane;
    // Spans without a length enclose nothing and need no lane.
    if (has_room_for_spans()) lane = rows_.row(row).lanes.Place(record.start_ns, record.end_ns);
    placement.lane = lane.value_or(0);
    placement.has_length = lane.has_value();
    placement.is_squeezed = !lane.has_value();
    if (placement.is_squeezed) ++squeezed_;
  }
  const uint32_t place = Placed(record, number, placement);
  if (no_flows_ || record.kind != RecordKind::kSpan || kind != StreamKind::kFramework) return;
  arrows_.AddSpan(
      row,
      {.number = number, .start_ns = record.start_ns, .end_ns = record.end_ns, .place = place});
}

// The second pass: arrows are not written by themselves, and records of hosts other than counters
// are omitted.
absl::Status RowExporter::WriteRecord(const TimelineRecord& record, uint64_t number,
                                      const Placement& placement) {
  if (record.kind == RecordKind::kStopAttributes) return WriteStop(record);
  if (kind_of(record.stream) == StreamKind::kHost) {
    return record.kind == RecordKind::kCounter ? WriteHostCounter(record) : absl::OkStatus();
  }
  if (record.kind == RecordKind::kCounter) return WriteCounter(record);
  return placement.row == Placement::kNoRow ? absl::OkStatus()
                                            : WriteEvent(record, number, placement);
}

}  // namespace neurontrace
