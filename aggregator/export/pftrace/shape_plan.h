// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// How one attribute is written as a debug annotation.
struct ArgumentPlan {
  uint32_t key = 0;  // index in its shape
  ValueType type = ValueType::kNull;
  uint32_t name_iid = 0;
  // Not 0: the attribute is a number elsewhere, and a text that is no number has this name.
  uint32_t text_name_iid = 0;
};

// What is worked out once for a shape of a chunk, so that an event costs no look-up by name.
struct ShapePlan {
  static constexpr uint32_t kNone = 0xffffffffu;

  bool is_made = false;
  bool has_id = false;
  RowSource source = RowSource::kRuntime;
  bool is_device_execution = false;  // nc_exec_running: the title has the model's name
  bool names_model = false;          // kbl_exec_pre: says which model an exec_id runs
  // Keys of attributes that mean something to us.
  uint32_t name_key = kNone;  // framework: the event's own name
  uint32_t core_key = kNone;  // device_core_idx
  uint32_t model_name_key = kNone;
  uint32_t model_id_key = kNone;
  uint32_t exec_id_key = kNone;

  uint64_t generation = 0;  // of the interned numbers that follow
  uint32_t name_iid = 0;
  uint32_t category_iid = 0;  // 0: none
  uint32_t name_value_iid = 0;
  std::vector<ArgumentPlan> arguments;
  struct Stop {
    uint64_t shape = 0;  // its number
    std::vector<ArgumentPlan> arguments;
  };
  std::vector<Stop> stops;  // by the shape of the stop
};

// The strings of one chunk as interned numbers.
class ChunkStrings {
 public:
  static constexpr size_t kInternedBytesMax = 256;  // longer strings are written out

  explicit ChunkStrings(uint64_t serial) : serial_(serial) {}

  uint64_t serial() const { return serial_; }
  uint64_t last_used = 0;  // the owner's

  uint32_t StringIid(const ChunkNames& names, uint64_t string, Interner& interner) {
    return Iid(string_iids_, names, string, interner, &Interner::StringValue);
  }
  uint32_t NameIid(const ChunkNames& names, uint64_t string, Interner& interner) {
    return Iid(name_iids_, names, string, interner, &Interner::EventName);
  }

 private:
  struct Iids {
    uint64_t generation = 0;
    std::vector<uint32_t> iid;  // by string; 0: not yet interned
  };
  uint32_t Iid(Iids& iids, const ChunkNames& names, uint64_t string, Interner& interner,
               uint32_t (Interner::*intern)(std::string_view)) {
    if (iids.generation != interner.generation()) [[unlikely]] {
      iids.iid.assign(names.strings.size(), 0);
      iids.generation = interner.generation();
    }
    uint32_t& iid = iids.iid[string];
    if (iid == 0) iid = (interner.*intern)(names.strings[string]);
    return iid;
  }

  const uint64_t serial_;
  Iids string_iids_;
  Iids name_iids_;
};

// The plans of all shapes, and the strings of the chunks at hand. One thread at a time.
class EventPlans {
 public:
  // Without interned numbers.
  const ShapePlan& Structure(const SharedShape& shape);
  // With those of the interner's generation.
  ShapePlan& Interned(const SharedShape& shape, Interner& interner);
  const std::vector<ArgumentPlan>& StopArguments(ShapePlan& plan, const SharedShape& start,
                                                 const SharedShape& stop, Interner& interner);
  ChunkStrings& StringsOf(const TimelineRecord& record);
  // Forgets what no batch has used for a while. Between batches.
  void Sweep();

 private:
  static constexpr uint64_t kBatchesKept = 64;
  static constexpr uint64_t kPlansMax = 16'384;  // of the lowest numbers: kept to the end

  ShapePlan& PlanOf(const SharedShape& shape);

  std::vector<std::unique_ptr<ShapePlan>> plans_;                         // by number
  absl::flat_hash_map<uint64_t, std::unique_ptr<ShapePlan>> late_plans_;  // of higher numbers
  absl::flat_hash_map<uint64_t, std::unique_ptr<ChunkStrings>> strings_;  // by serial
  std::vector<ChunkStrings*> latest_;                                     // by stream
  uint64_t batch_ = 0;
};

}  // namespace neurontrace
