// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/steps.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/parquet/table_writer.h"

namespace neurontrace {

// The tables of figures derived from events (docs/formats/derived.md). Used by one thread at a
// time; the streams, the files and `bytes_written` must outlive it.
class DerivedTables {
 public:
  // `file_bytes_max` is that of TableWriter. Files are opened when the first rows are written.
  DerivedTables(std::span<const TimelineStream> streams, OutputFiles& files,
                uint64_t file_bytes_max, uint64_t& bytes_written);

  // Takes a preparation from before the first batch. Called for each before the first Take, in the
  // order of time.
  void RecordPreparation(const EarlierPreparation& earlier) {
    execution_finder_.RecordPreparation(earlier.stream, earlier.exec_id, earlier.start_ns,
                                        earlier.model_name);
  }
  // Takes the next batch and writes the rows that it completes. Fails with errors of the files.
  absl::Status Take(const TimelineBatch& batch);
  // Writes the remaining rows and closes the tables.
  absl::Status Finish();

 private:
  // Writes and clears everything found so far. Rows are in the order in which the finders complete
  // them, which is not always that of their times.
  absl::Status WriteFound();
  // Each writes one row; WriteCollective also writes one for each member.
  absl::Status WriteExecution(const Execution& execution);
  absl::Status WriteStep(const Step& step);
  absl::Status WriteCollective(const Collective& collective);
  absl::Status WriteMemory(const HbmSample& sample);
  absl::Status WriteBandwidth(const BandwidthSample& sample);
  // Writes instance, process, core and rank, which are columns of every such table.
  void WriteStream(uint32_t stream, TableWriter& table) const;

  std::span<const TimelineStream> streams_;
  // Shared by the finders, which examine the same shapes. Declared before them, because they refer
  // to it.
  ShapeFieldTable fields_;
  ExecutionFinder execution_finder_;
  StepFinder step_finder_;
  CollectiveFinder collective_finder_;
  HbmUse hbm_use_;
  Bandwidth bandwidth_finder_;

  // Found and not written yet, as are the next four.
  std::vector<Execution> executions_;
  std::vector<Step> steps_;
  std::vector<Collective> collectives_;
  std::vector<HbmSample> memory_;
  std::vector<BandwidthSample> bandwidth_;

  // One for each table: a table whose finder finds nothing makes no file.
  TableWriter execution_table_;
  TableWriter step_table_;
  TableWriter collective_table_;
  TableWriter member_table_;
  TableWriter memory_table_;
  TableWriter bandwidth_table_;
};

}  // namespace neurontrace
