// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/parquet_format.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/parquet/derived_tables.h"
#include "aggregator/export/parquet/event_row.h"
#include "aggregator/export/parquet/flow_edges.h"
#include "aggregator/export/parquet/profile_tables.h"
#include "aggregator/export/parquet/table_writer.h"
#include "aggregator/export/waiting_spans.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Writes a timeline as the vendor's Parquet tables; docs/formats/parquet.md defines every column.
// Rows of events are in the order of their starts, except for spans whose stop is in a later chunk,
// which are written where they stop. Used by one thread at a time; the files must outlive it.
class ParquetExporter : public Exporter {
 public:
  struct Options {
    uint64_t file_bytes_max = 0;  // 0: TableWriter's default
    bool has_flows = true;
  };
  ParquetExporter(Options options, OutputFiles& files) : options_(options), files_(files) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_written_; }

 private:
  absl::Status WriteRecord(const TimelineRecord& record);
  absl::Status WriteRow(EventRow& row);
  absl::Status WriteEdge(const FlowEdge& edge);

  const Options options_;
  OutputFiles& files_;
  uint64_t bytes_written_ = 0;
  const TimelineHeader* header_ = nullptr;
  FlowEdgeSink take_edge_;
  // Made by Begin, because they refer to the header.
  std::optional<TableWriter> events_;
  std::optional<TableWriter> flows_;
  std::optional<EventRowMaker> rows_;
  // nullopt if they are not requested.
  std::optional<FlowEdges> edges_;
  std::optional<DerivedTables> derived_;
  std::optional<ExportInsight> insight_;
  EventRow row_;
  int64_t next_id_ = 0;
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  WaitingSpans<EventRow> waiting_;
};

// Arrows become rows of Flow rather than events.
bool IsArrow(RecordKind kind) {
  return kind == RecordKind::kFlowStart || kind == RecordKind::kFlowStep ||
         kind == RecordKind::kFlowEnd;
}

// Returns what a waiting row holds beside its own size, for WaitingSpans.
size_t TextBytes(const EventRow& row) {
  size_t bytes = row.name.size() + row.attributes.size() + row.framework_stream.size() +
                 row.category.size() + row.process_name.size() + row.thread_name.size();
  for (const std::string& id : row.flow_ids) bytes += sizeof id + id.size();
  return bytes;
}

absl::Status ParquetExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  waiting_.Begin(header);
  events_.emplace(files_, kSystemProfileEvents, options_.file_bytes_max, bytes_written_);
  flows_.emplace(files_, kFlow, options_.file_bytes_max, bytes_written_);
  rows_.emplace(header);
  if (options_.has_flows) edges_.emplace(header);
  take_edge_ = [this](const FlowEdge& edge) { return WriteEdge(edge); };
  derived_.emplace(header.streams, files_, options_.file_bytes_max, bytes_written_);
  for (const EarlierPreparation& earlier : header.earlier) derived_->RecordPreparation(earlier);
  insight_.emplace(header);
  return absl::OkStatus();
}

// Derived rows come last: their finders need the batch as a whole.
absl::Status ParquetExporter::Write(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) RETURN_IF_ERROR(WriteRecord(*record));
  if (edges_) RETURN_IF_ERROR(edges_->EndBatch(take_edge_));
  while (auto late = waiting_.TakeLate(batch.begin_ns)) RETURN_IF_ERROR(WriteRow(*late));
  insight_->Take(batch);
  return derived_->Take(batch);
}

// A stop that came separately completes a waiting row; an arrow becomes an edge; every other record
// that the vendor's table has a place for becomes a row.
absl::Status ParquetExporter::WriteRecord(const TimelineRecord& record) {
  if (record.kind == RecordKind::kStopAttributes) {
    auto row = waiting_.Take(record.span_id);
    if (!row) return absl::OkStatus();
    rows_->AddStop(record, *row);
    return WriteRow(*row);
  }
  if (IsArrow(record.kind)) {
    if (edges_) edges_->CollectPoint(record);
    return absl::OkStatus();
  }
  // The vendor's table of events has no place for counters of frameworks.
  if (record.kind == RecordKind::kCounter) return absl::OkStatus();
  first_ns_ = std::min(first_ns_, record.start_ns);
  last_ns_ = std::max(last_ns_, record.end_ns);
  row_.id = next_id_++;
  rows_->Fill(record, row_);
  // Before the row may wait: edges need only its id and times.
  if (edges_) RETURN_IF_ERROR(edges_->AddRow(record, row_, take_edge_));
  const size_t bytes = TextBytes(row_);
  if (!waiting_.Admits(record, bytes)) return WriteRow(row_);
  waiting_.Add(record, std::exchange(row_, {}), bytes);
  return absl::OkStatus();
}

absl::Status ParquetExporter::WriteRow(EventRow& row) {
  rows_->Write(row, *events_);
  return events_->EndRow();
}

absl::Status ParquetExporter::WriteEdge(const FlowEdge& edge) {
  flows_->Int(edge.in_id).Int(edge.out_id);
  flows_->Text(kSystemProfileEvents.name).Text(kSystemProfileEvents.name);
  flows_->Text(edge.type).Int(edge.gap_ns);
  return flows_->EndRow();
}

// Rows that still wait are written without their stops. The warnings of all readings must be
// complete before WriteWarningTable.
absl::Status ParquetExporter::Finish(ExportSummary& summary) {
  while (auto row = waiting_.TakeRest()) RETURN_IF_ERROR(WriteRow(*row));
  waiting_.Warn(summary);
  if (edges_) {
    for (std::string& warning : edges_->Warnings()) summary.warnings.push_back(std::move(warning));
  }
  RETURN_IF_ERROR(events_->Finish());
  RETURN_IF_ERROR(flows_->Finish());
  RETURN_IF_ERROR(derived_->Finish());
  // Small tables come last: they describe what was found while reading.
  const TableTarget target{files_, options_.file_bytes_max, bytes_written_};
  RETURN_IF_ERROR(WriteHostTables(*header_, target, summary));
  RETURN_IF_ERROR(WriteDeviceProfileTable(*header_, target));
  RETURN_IF_ERROR(WriteLossTable(*header_, target));
  RETURN_IF_ERROR(WriteClockTable(*header_, target));
  const CaptureAnswer answer = insight_->Finish();
  RETURN_IF_ERROR(WriteVerdictTable(*header_, answer, target));
  RETURN_IF_ERROR(WriteWarningTable(*header_, summary.warnings, target));
  RETURN_IF_ERROR(WriteMetadataTable(*header_, first_ns_ == UINT64_MAX ? 0 : first_ns_, last_ns_,
                                     answer.text, target));
  return WriteSchemaTable(target);
}

}  // namespace

bool HasParquet() { return true; }

absl::StatusOr<std::unique_ptr<Exporter>> MakeParquet(const ExportRequest& request,
                                                      OutputFiles& files) {
  if (request.compression != ExportCompression::kNone) {
    return InvalidArgument("parquet: tables are already compressed; omit --compress and .gz");
  }
  // Options without a meaning for tables are refused, and the message names the alternative.
  if (!request.primary_group.empty() || !request.secondary_group.empty()) {
    return InvalidArgument(
        "parquet: groups do not apply to tables; omit them and group the rows in SQL");
  }
  if (request.split_by_worker) {
    return InvalidArgument("parquet: tables are split only by size; omit --split");
  }
  return std::make_unique<ParquetExporter>(
      ParquetExporter::Options{.file_bytes_max = request.max_file_bytes,
                               .has_flows = !request.no_flows},
      files);
}

}  // namespace neurontrace
