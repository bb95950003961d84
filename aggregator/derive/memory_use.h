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

// What memory of a device is used for: the categories of the vendor's SystemProfileHbmUsage table,
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
// "generic", "tensor_instructions": the vendor's column without its "_bytes".
std::string_view ToString(HbmCategory category);
// Of a usage_type as the runtime writes it, in whatever case and with whatever signs between words.
HbmCategory HbmCategoryOf(std::string_view usage_type);

// One high-bandwidth memory. A plain value.
struct HbmIdentity {
  std::string instance_id;
  uint64_t device = 0;  // mla_idx
  uint64_t hbm = 0;     // hbm_idx
  friend auto operator<=>(const HbmIdentity&, const HbmIdentity&) = default;
};

// What was in use after one allocation or release. A plain value.
struct HbmSample {
  uint32_t hbm = 0;      // index into HbmUse::memories()
  uint64_t time_ns = 0;  // reference time: the end of the event
  uint64_t total_bytes = 0;
  std::array<uint64_t, kHbmCategories> category_bytes = {};
};

struct HbmCounts {
  uint64_t samples = 0;
  uint64_t failed = 0;         // allocations that the runtime refused
  uint64_t without_total = 0;  // events that do not say what is in use: not in a sample
  uint64_t open = 0;           // events whose stop is not known: the same
  uint64_t dropped = 0;        // beyond a limit of HbmUse
};

// Finds what is in use of each device memory from the allocations and releases that the runtime
// reports, each of which says how much its category has afterwards, and all together. A category
// of which nothing was reported yet counts as 0, so that the sum of categories can be less than the
// total. Several processes may use one memory: each reports of its own what it has, and the sum
// over them is the sample.
//
// One thread at a time; the streams and the table must outlive it.
class HbmUse {
 public:
  static constexpr size_t kMemoriesMax = 65'536;
  static constexpr size_t kPendingMax = 262'144;  // events that have begun and not ended

  HbmUse(std::span<const TimelineStream> streams, ShapeFieldTable& fields);

  // Takes a batch; appends the samples of its time and before, in the order of time.
  void Take(const TimelineBatch& batch, std::vector<HbmSample>& done);
  void Finish(std::vector<HbmSample>& done);
  std::span<const HbmIdentity> memories() const { return memories_; }
  const HbmCounts& counts() const { return counts_; }

 private:
  using Place = std::tuple<uint32_t, uint64_t, uint64_t>;  // stream, device, HBM
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
  struct Waiting {  // for the attributes of its stop
    uint32_t process = 0;
    HbmCategory category = HbmCategory::kUnknown;
  };
  // What one process has of one memory.
  struct ProcessUse {
    uint32_t memory = 0;
    uint64_t total_bytes = 0;
    std::array<uint64_t, kHbmCategories> category_bytes = {};
  };

  void TakeSpan(const TimelineRecord& record, const ShapeFields& fields);
  void TakeStop(const TimelineRecord& record);
  void Push(const Waiting& about, uint64_t time_ns, std::optional<uint64_t> category_bytes,
            std::optional<uint64_t> total_bytes, bool is_refused);
  std::optional<uint32_t> ProcessOf(const TimelineRecord& record, const ShapeFields& fields);
  std::optional<uint32_t> FindProcess(const Place& place);
  void GiveOutBefore(uint64_t time_ns, std::vector<HbmSample>& done);

  std::span<const TimelineStream> streams_;
  ShapeFieldTable& fields_;
  HbmCounts counts_;
  uint64_t next_order_ = 0;
  std::vector<HbmIdentity> memories_;
  std::map<HbmIdentity, uint32_t> memory_numbers_;
  std::map<std::pair<uint32_t, WorkerIdentity>, uint32_t> process_numbers_;
  absl::flat_hash_map<Place, uint32_t> process_at_;  // kMemoriesMax of them: others are sought
  std::vector<ProcessUse> processes_;
  std::vector<HbmSample> now_;                      // by memory
  absl::flat_hash_map<uint64_t, Waiting> waiting_;  // by span_id
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
};

}  // namespace neurontrace
