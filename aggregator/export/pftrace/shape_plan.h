// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/pftrace/chunk_strings.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// How one attribute is written as a debug annotation. A plain value.
struct ArgumentPlan {
  // Index among the keys of its shape.
  uint32_t key = 0;
  ValueType type = ValueType::kNull;
  uint32_t name_iid = 0;
  // If not 0, the attribute is a number in other events, and a text that is not a number gets this
  // name: an argument has one type everywhere.
  uint32_t text_name_iid = 0;
};

// What is looked up once for a shape, so that an event needs no look-up by name. A plain value.
struct ShapePlan {
  // Marks the absence of a key.
  static constexpr uint32_t kNone = 0xffffffffu;

  // Whether the fields up to the generation are set.
  bool is_made = false;
  bool has_id = false;
  RowSource source = RowSource::kRuntime;
  // nc_exec_running: the title contains the model's name.
  bool is_device_execution = false;
  // kbl_exec_pre: tells which model an exec_id runs.
  bool names_model = false;
  // Keys of attributes that have a meaning here; kNone for absent ones.
  uint32_t name_key = kNone;  // framework: the event's own name
  uint32_t core_key = kNone;  // device_core_idx
  uint32_t model_name_key = kNone;
  uint32_t model_id_key = kNone;
  uint32_t exec_id_key = kNone;

  // Of the interned numbers that follow; see Interner.
  uint64_t generation = 0;
  uint32_t name_iid = 0;
  // 0: none.
  uint32_t category_iid = 0;
  uint32_t name_value_iid = 0;
  std::vector<ArgumentPlan> arguments;
  // The arguments of a stop beside those of this start.
  struct Stop {
    // The number of the stop's shape.
    uint64_t shape = 0;
    std::vector<ArgumentPlan> arguments;
  };
  // By the shape of the stop.
  std::vector<Stop> stops;
};

// The plans of all shapes, and the strings of the chunks that are being read. The exporter asks for
// a plan for every record, so that this is a hot path. Used by one thread at a time.
class EventPlans {
 public:
  // Returns the plan without interned numbers.
  const ShapePlan& Structure(const SharedShape& shape);
  // Returns the plan with those of the interner's generation.
  ShapePlan& Interned(const SharedShape& shape, Interner& interner);
  // Returns the arguments of a stop beside those of `start`, whose plan is `plan`.
  const std::vector<ArgumentPlan>& StopArguments(ShapePlan& plan, const SharedShape& start,
                                                 const SharedShape& stop, Interner& interner);
  // Returns the strings of the record's chunk. Valid until the next Sweep.
  ChunkStrings& StringsOf(const TimelineRecord& record);
  // Forgets what no batch has used for a while. Called between batches, as it invalidates
  // references.
  void Sweep();

 private:
  static constexpr uint64_t kBatchesKept = 64;
  // Plans with lower numbers are kept to the end; shapes beyond live as long as their chunk.
  static constexpr uint64_t kPlansMax = 16'384;

  // Returns the shape's plan, empty if it is new.
  ShapePlan& PlanOf(const SharedShape& shape);

  std::vector<std::unique_ptr<ShapePlan>> plans_;                         // by number
  absl::flat_hash_map<uint64_t, std::unique_ptr<ShapePlan>> late_plans_;  // of higher numbers
  absl::flat_hash_map<uint64_t, std::unique_ptr<ChunkStrings>> strings_;  // by serial
  std::vector<ChunkStrings*> latest_;                                     // by stream
  // Counts calls of Sweep.
  uint64_t batch_ = 0;
};

}  // namespace neurontrace
