// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/framework_links.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/steps.h"
#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"

namespace neurontrace {

// What was derived from one batch. A plain value that holds none of the batch's memory.
struct DerivedBatch {
  // An arrow, or a collective, that touches a record of the batch.
  struct Flow {
    // Index in the batch.
    uint64_t record = 0;
    uint64_t id = 0;
  };
  // Arrows by record. Like `correlations`, ascends by record, so that PftraceExporter needs no
  // search.
  std::vector<Flow> flows;
  // Collectives that the record is a part of, by record; the id is the collective's number.
  std::vector<Flow> correlations;
  std::vector<Step> steps;
  std::vector<Collective> collectives;
  std::vector<HbmSample> memory;
  // Memories that appear in `memory` for the first time, in the order of their indexes.
  std::vector<HbmIdentity> new_memories;
  std::vector<BandwidthSample> bandwidth;
  // Only of Finish, because a verdict is about the whole time.
  std::optional<CaptureAnswer> answer;

  // Empties the batch before it is reused, and keeps the capacity.
  void Clear();
};

// Derives what a trace shows but was not recorded: steps, collectives over cores, device memory in
// use, bandwidth, verdicts, and arrows between records. This takes a quarter of an export's time,
// so it is separate from DerivedTracks, which writes the results, and can run on another thread.
// Used by one thread at a time; the header must outlive it.
class Derivation {
 public:
  // Finders remember preparations from before the window, see TimelineHeader::earlier.
  Derivation(const TimelineHeader& header, bool has_flows, bool has_verdicts);

  // Takes the next batch; `out` must be empty. Results that need later batches come with those.
  void Take(const TimelineBatch& batch, DerivedBatch& out);
  // Returns the remaining results. Called once, after the last batch.
  void Finish(DerivedBatch& out);

  // Returns the length of a bandwidth sample in nanoseconds.
  uint64_t bin_ns() const { return bandwidth_.bin_ns(); }
  std::vector<std::string> LinkWarnings() const;

 private:
  // Returns the number of the collective that the record is a part of, or 0. A record that nothing
  // is derived from costs one look-up.
  uint64_t TakeRecord(TimelineRecord& record) {
    const ShapeFields& fields = fields_.Of(*record.shape);
    if (fields.type == DerivedType::kOther) [[likely]]
      return 0;
    return AddSelected(record, fields);
  }
  // Handles a record that something is derived from.
  uint64_t AddSelected(TimelineRecord& record, const ShapeFields& fields);
  // Adds the memories that appeared since the last call.
  void AddMemories(DerivedBatch& out);

  ShapeFieldTable fields_;
  // nullopt: no arrows.
  std::optional<FrameworkLinks> links_;
  ExecutionFinder execution_finder_;
  StepFinder step_finder_;
  CollectiveFinder collective_finder_;
  HbmUse hbm_use_;
  Bandwidth bandwidth_;
  // nullopt: no verdicts.
  std::optional<ExportInsight> insight_;
  // The records of the current batch, by what is derived from them. Each finder then sees only its
  // own.
  TimelineBatch transfers_;
  TimelineBatch allocations_;
  // Executions, their preparations, and framework events.
  TimelineBatch executing_;
  std::vector<Execution> executions_;
  // Memories that were returned in new_memories.
  size_t memories_written_ = 0;
};

}  // namespace neurontrace
