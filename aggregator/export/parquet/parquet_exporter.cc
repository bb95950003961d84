// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/parquet_exporter.h"

#include <fmt/format.h>

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

}  // namespace

absl::Status ParquetExporter::Begin(const TimelineHeader& header) {
  header_ = &header;
  events_.emplace(files_, kSystemProfileEvents, options_.file_bytes_max, bytes_written_);
  flows_.emplace(files_, kFlow, options_.file_bytes_max, bytes_written_);
  rows_.emplace(header, options_.has_flows);
  if (options_.has_flows) edges_.emplace(header);
  take_edge_ = [this](const FlowEdge& edge) { return WriteEdge(edge); };
  derived_.emplace(header.streams, files_, options_.file_bytes_max, bytes_written_);
  return absl::OkStatus();
}

absl::Status ParquetExporter::Write(const TimelineBatch& batch) {
  for (const TimelineRecord* record : batch.records) RETURN_IF_ERROR(WriteRecord(*record));
  return derived_->Take(batch);
}

absl::Status ParquetExporter::WriteRecord(const TimelineRecord& record) {
  if (record.kind == RecordKind::kStopAttributes) {
    const auto waiting = waiting_.find(record.span_id);
    if (waiting == waiting_.end()) return absl::OkStatus();
    rows_->AddStop(record, waiting->second);
    RETURN_IF_ERROR(WriteRow(waiting->second));
    waiting_.erase(waiting);
    return absl::OkStatus();
  }
  if (IsArrow(record.kind)) {
    return edges_ ? edges_->TakePoint(record, take_edge_) : absl::OkStatus();
  }
  // Counters of frameworks have no place among the vendor's events.
  if (record.kind == RecordKind::kCounter) return absl::OkStatus();
  first_ns_ = std::min(first_ns_, record.start_ns);
  last_ns_ = std::max(last_ns_, record.end_ns);
  row_.id = next_id_++;
  rows_->Fill(record, row_);
  if (edges_) RETURN_IF_ERROR(edges_->TakeRow(record, row_, take_edge_));
  if ((record.flags & kStopFollows) == 0) return WriteRow(row_);
  if (waiting_.size() < kWaitingMax) {
    waiting_.emplace(record.span_id, std::exchange(row_, {}));
    return absl::OkStatus();
  }
  ++not_waited_;
  return WriteRow(row_);
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
  for (auto& [span_id, row] : waiting_) RETURN_IF_ERROR(WriteRow(row));
  waiting_.clear();
  if (not_waited_ > 0) {
    summary.warnings.push_back(fmt::format(
        "{} spans stand in the tables without the attributes of their stop: more than {} waited "
        "for it at once",
        not_waited_, kWaitingMax));
  }
  RETURN_IF_ERROR(events_->Finish());
  RETURN_IF_ERROR(flows_->Finish());
  RETURN_IF_ERROR(derived_->Finish());
  const TableTarget target{files_, options_.file_bytes_max, bytes_written_};
  RETURN_IF_ERROR(WriteHostTables(*header_, target));
  RETURN_IF_ERROR(WriteLossTable(*header_, target));
  RETURN_IF_ERROR(WriteClockTable(*header_, target));
  RETURN_IF_ERROR(WriteWarningTable(*header_, summary.warnings, target));
  RETURN_IF_ERROR(
      WriteMetadataTable(*header_, first_ns_ == UINT64_MAX ? 0 : first_ns_, last_ns_, target));
  return WriteSchemaTable(target);
}

}  // namespace neurontrace
