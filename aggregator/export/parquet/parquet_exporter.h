// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "aggregator/export/exporter.h"
#include "aggregator/export/parquet/derived_tables.h"
#include "aggregator/export/parquet/event_row.h"
#include "aggregator/export/parquet/flow_edges.h"
#include "aggregator/export/parquet/table_writer.h"
#include "aggregator/export/waiting_spans.h"

namespace neurontrace {

// Writes a timeline as the vendor's Parquet tables; docs/formats/parquet.md has every column. Rows
// of events stand in the order of their start, but for spans whose stop lies in a later chunk: they
// stand where they stop. One thread at a time; the files must outlive it.
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
  FlowEdgeTaker take_edge_;
  std::optional<TableWriter> events_;
  std::optional<TableWriter> flows_;
  std::optional<EventRowMaker> rows_;
  std::optional<FlowEdges> edges_;  // nullopt: they are not asked for
  std::optional<DerivedTables> derived_;
  EventRow row_;
  int64_t next_id_ = 0;
  uint64_t first_ns_ = UINT64_MAX;
  uint64_t last_ns_ = 0;
  WaitingSpans<EventRow> waiting_;
};

}  // namespace neurontrace
