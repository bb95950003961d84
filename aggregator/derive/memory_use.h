// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What a device's memory is used for: the categories of the vendor's SystemProfileHbmUsage table,
// in its order.
enum class HbmCategory : uint8_t {
  kGeneric,
  kTensorInstructions,
  kScalarInstructions,
  kGpsimdInstructions,
  kVectorInstructions,
  kSyncInstructions,
  kIo,
  kDramSpill,
  kWeights,
  kProfilerBuffers,
  kScalarTable,
  kSharedScratchpad,
  kTensors,
  kUcodeLib,
  kGpsimdStdio,
  kCollectives,
  kScratchpad,
  kDmaRingsRuntime,
  kDmaRingsSpill,
  kDmaRingsIo,
  kDmaRingsCollectives,
  kUnknown,
};
inline constexpr size_t kHbmCategories = 22;
// Returns "generic", "tensor_instructions" and so on: the vendor's column without its "_bytes".
std::string_view ToString(HbmCategory category);
// Returns the category of a usage_type as the runtime writes it, regardless of case and of the
// characters between words; kUnknown for an unknown one.
HbmCategory HbmCategoryOf(std::string_view usage_type);

// One high-bandwidth memory of one device. A plain value.
struct HbmIdentity {
  std::string instance_id;
  uint64_t device = 0;  // mla_idx
  uint64_t hbm = 0;     // hbm_idx
  friend auto operator<=>(const HbmIdentity&, const HbmIdentity&) = default;
};

// What was in use after one allocation or release. A plain value.
struct HbmSample {
  // Index into HbmUse::memories().
  uint32_t hbm = 0;
  // Reference time of the end of the event.
  uint64_t time_ns = 0;
  uint64_t total_bytes = 0;
  std::array<uint64_t, kHbmCategories> category_bytes = {};
};

// Counts of events unless stated otherwise.
struct HbmCounts {
  uint64_t samples = 0;
  // Allocations that the runtime refused.
  uint64_t failed = 0;
  // Events that do not report what is in use: in no sample.
  uint64_t without_total = 0;
  // Events whose stop is not known: in no sample.
  uint64_t open = 0;
  // Events beyond a limit of HbmUse.
  uint64_t dropped = 0;
};

// Finds what is in use of each device memory from the allocations and releases that the runtime
// reports. Each tells how much its category has afterwards, and all categories together. A category
// without a report so far counts as 0, so that the sum of categories can be less than the total.
// Several processes may use one memory: each reports only its own use, and the sample is the sum
// over them. docs/formats/derived.md defines the figure.
//
// Used by one thread at a time; the streams and the table must outlive it.
class HbmUse {
 public:
  // Of memories, and of pairs of memory and process. Events of further ones are dropped.
  static constexpr size_t kMemoriesMax = 65'536;
  // Events that have begun and not ended. Further ones are dropped.
  static constexpr size_t kPendingMax = 262'144;

  HbmUse(std::span<const TimelineStream> streams, ShapeFieldTable& fields);

  // Takes the next batch and appends the samples before its end, in the order of time.
  void Take(const TimelineBatch& batch, std::vector<HbmSample>& done);
  // Appends the remaining samples. Called once, after the last batch.
  void Finish(std::vector<HbmSample>& done);
  // Memories are numbered in the order of their first event.
  std::span<const HbmIdentity> memories() const { return memories_; }
  const HbmCounts& counts() const { return counts_; }

 private:
  // Where an event happened, as the event itself tells it.
  using Place = std::tuple<uint32_t, uint64_t, uint64_t>;  // stream, device, HBM
  // The report of one event, until its end is reached: events come in the order of their starts.
  struct Change {
    uint64_t time_ns = 0;
    uint64_t order = 0;
    uint32_t process = 0;  // index into processes_
    HbmCategory category = HbmCategory::kUnknown;
    uint64_t category_bytes = 0;
    uint64_t total_bytes = 0;
    bool operator>(const Change& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : order > other.order;
    }
  };
  // An event whose stop, and with it the report, is in a later chunk.
  struct Waiting {
    uint32_t process = 0;
    HbmCategory category = HbmCategory::kUnknown;
  };
  // What one process uses of one memory. Replaced by each report; the sample of the memory is the
  // sum over its processes.
  struct ProcessUse {
    uint32_t memory = 0;
    uint64_t total_bytes = 0;
    std::array<uint64_t, kHbmCategories> category_bytes = {};
  };

  // Take an allocation or release, or the stop of one that waits. AddStop ignores the stop of an
  // event that was not kept.
  void AddSpan(const TimelineRecord& record, const ShapeFields& fields);
  void AddStop(const TimelineRecord& record);
  // Queues the event's report until the time order is certain.
  void Push(const Waiting& about, uint64_t time_ns, std::optional<uint64_t> category_bytes,
            std::optional<uint64_t> total_bytes, bool is_refused);
  // Returns the index in processes_ of the event's memory and worker, or nullopt beyond
  // kMemoriesMax.
  std::optional<uint32_t> ProcessOf(const TimelineRecord& record, const ShapeFields& fields);
  // Returns the same for the memory and worker of a place, and adds either if it is new.
  std::optional<uint32_t> FindProcess(const Place& place);
  // Applies the reports before this time and appends a sample for each.
  void EmitBefore(uint64_t time_ns, std::vector<HbmSample>& done);

  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  HbmCounts counts_;
  // Order of Push, which decides between reports of one time.
  uint64_t next_order_ = 0;
  std::vector<HbmIdentity> memories_;
  std::map<HbmIdentity, uint32_t> memory_numbers_;
  std::map<std::pair<uint32_t, WorkerIdentity>, uint32_t> process_numbers_;
  // A cache of up to kMemoriesMax places; others are looked up each time.
  absl::flat_hash_map<Place, uint32_t> process_at_;
  std::vector<ProcessUse> processes_;
  // The latest sample of each memory.
  std::vector<HbmSample> now_;
  absl::flat_hash_map<uint64_t, Waiting> waiting_;  // by span_id
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
};

}  // namespace neurontrace
