// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/parquet_exporter.h"

#include <algorithm>
#include <utility>

#include "aggregator/export/parquet/profile_tables.h"
#include "base/status.h"

namespace neurontrace {
namespace {

bool IsArrow(RecordKind kind) {
  return kind == RecordKind::kFlowStart || kind == RecordKind::kFlowStep ||
         kind == RecordKind::kFlowEnd;
}

size_t TextBytes(const EventRow& row) {
  size_t bytes = row.name.size() + row.attributes.size() + row.framework_stream.size() +
                 row.category.size() + row.process_name.size() + row.thread_name.size();
  for (const std::string& id : row.flow_ids) bytes += sizeof id + id.size();
  return bytes;
}

}  // namespace

absl::Status ParquetExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  waiting_.Begin(header);
  events_.emplace(files_, kSystemProfileEvents, options_.file_bytes_max, bytes_written_);
  flows_.emplace(files_, kFlow, options_.file_bytes_max, bytes_written_);
  rows_.emplace(header);
  if (options_.has_flows) edges_.emplace(header);
  take_edge_ = [this](const FlowEdge& edge) { return WriteEdge(edge); };
  derived_.emplace(header.streams, files_, options_.file_bytes_max, bytes_written_);
  for (const EarlierPreparation& earlier : header.earlier) derived_->NotePreparation(earlier);
  return absl::OkStatus();
}

absl::Status ParquetExporter::Write(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) RETURN_IF_ERROR(WriteRecord(*record));
  if (edges_) RETURN_IF_ERROR(edges_->EndBatch(take_edge_));
  while (auto late = waiting_.TakeLate(batch.begin_ns)) RETURN_IF_ERROR(WriteRow(*late));
  return derived_->Take(batch);
}

absl::Status ParquetExporter::WriteRecord(const TimelineRecord& record) {
  if (record.kind == RecordKind::kStopAttributes) {
    auto row = waiting_.Take(record.span_id);
    if (!row) return absl::OkStatus();
    rows_->AddStop(record, *row);
    return WriteRow(*row);
  }
  if (IsArrow(record.kind)) {
    if (edges_) edges_->TakePoint(record);
    return absl::OkStatus();
  }
  // Counters of frameworks have no place among the vendor's events.
  if (record.kind == RecordKind::kCounter) return absl::OkStatus();
  first_ns_ = std::min(first_ns_, record.start_ns);
  last_ns_ = std::max(last_ns_, record.end_ns);
  row_.id = next_id_++;
  rows_->Fill(record, row_);
  if (edges_) RETURN_IF_ERROR(edges_->TakeRow(record, row_, take_edge_));
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

absl::Status ParquetExporter::Finish(ExportSummary& summary) {
  while (auto row = waiting_.TakeRest()) RETURN_IF_ERROR(WriteRow(*row));
  waiting_.Warn(summary);
  if (edges_) {
    for (std::string& warning : edges_->Warnings()) summary.warnings.push_back(std::move(warning));
  }
  RETURN_IF_ERROR(events_->Finish());
  RETURN_IF_ERROR(flows_->Finish());
  RETURN_IF_ERROR(derived_->Finish());
  const TableTarget target{files_, options_.file_bytes_max, bytes_written_};
  RETURN_IF_ERROR(WriteHostTables(*header_, target, summary));
  RETURN_IF_ERROR(WriteDeviceProfileTable(*header_, target));
  RETURN_IF_ERROR(WriteLossTable(*header_, target));
  RETURN_IF_ERROR(WriteClockTable(*header_, target));
  RETURN_IF_ERROR(WriteWarningTable(*header_, summary.warnings, target));
  RETURN_IF_ERROR(
      WriteMetadataTable(*header_, first_ns_ == UINT64_MAX ? 0 : first_ns_, last_ns_, target));
  return WriteSchemaTable(target);
}

}  // namespace neurontrace
