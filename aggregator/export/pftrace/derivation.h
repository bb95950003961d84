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
#include "aggregator/export/exporter.h"

namespace neurontrace {

// What was found from one batch. A plain value: it holds nothing of the batch's memory.
struct DerivedBatch {
  // An arrow that touches a record of the batch.
  struct Flow {
    uint64_t record = 0;  // its place in the batch
    uint64_t id = 0;
  };
  std::vector<Flow> flows;         // by record
  std::vector<Flow> correlations;  // collectives that it is a part of, by number
  std::vector<Step> steps;
  std::vector<Collective> collectives;
  std::vector<HbmSample> memory;
  std::vector<HbmIdentity> new_memories;  // those that its samples are the first of, in order
  std::vector<BandwidthSample> bandwidth;

  void Clear();  // keeps its memory
};

// Finds what a trace shows that was not recorded: steps, collectives over cores, device memory in
// use, bandwidth, and the arrows between records. It takes a quarter of an export's time, so it is
// apart from what writes them (DerivedTracks) and can be done on another thread. One thread at a
// time; the header must outlive it.
class Derivation {
 public:
  Derivation(const TimelineHeader& header, bool has_flows);

  // Takes the next batch; `out` is empty. What is known only later comes with a later batch.
  void Take(const TimelineBatch& batch, DerivedBatch& out);
  void Finish(DerivedBatch& out);

  uint64_t bin_ns() const { return bandwidth_.bin_ns(); }
  std::vector<std::string> LinkWarnings() const;

 private:
  // The number of the collective that the record is a part of; 0: none. A record of which nothing
  // can be derived costs one look-up.
  uint64_t TakeRecord(TimelineRecord& record) {
    const ShapeFields& fields = fields_.Of(*record.shape);
    if (fields.type == DerivedType::kOther) [[likely]]
      return 0;
    return TakeWanted(record, fields);
  }
  uint64_t TakeWanted(TimelineRecord& record, const ShapeFields& fields);
  void NoteMemories(DerivedBatch& out);

  ShapeFieldTable fields_;
  std::optional<FrameworkLinks> links_;  // none: no arrows
  ExecutionFinder execution_finder_;
  StepFinder step_finder_;
  CollectiveFinder collective_finder_;
  HbmUse hbm_use_;
  Bandwidth bandwidth_;
  // Of the batch at hand, by what is derived from them.
  TimelineBatch transfers_;
  TimelineBatch allocations_;
  TimelineBatch executing_;  // executions, their preparations, framework events
  std::vector<Execution> executions_;
  size_t memories_told_ = 0;
};

}  // namespace neurontrace
