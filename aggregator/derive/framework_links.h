// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/link_counts.h"
#include "aggregator/derive/mapped_operations.h"
#include "aggregator/derive/open_spans.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Why records belong together.
enum class LinkKind : uint8_t {
  kFrameworkCall,  // an operation of a framework, and the runtime's calls that it made
  kSequence,       // one nrta_seq_id of a worker
  kExecution,      // the runtime's call, its preparation, and what the device ran of it: exec_id
};

enum class LinkRole : uint8_t { kStart, kStep, kEnd };

// A record is part of a chain. Chains of one record are possible: what would follow never came.
struct LinkPoint {
  uint64_t id = 0;  // of the chain, from 1 on, over all kinds
  LinkRole role = LinkRole::kStart;
  LinkKind kind = LinkKind::kExecution;
};

// Finds in one pass what asked for what: from a framework's operation to the runtime's calls that
// it made, by instance, process id, thread id and time, which are the same host's clock, and by the
// framework's mapping files, which name operations for an nrta_seq_id; from the
// call (nrt_execute) to its preparation (kbl_exec_pre), which lies within it on its thread, and by
// exec_id of the core to the device's executions (nc_exec_running); and the spans of a worker that
// have one nrta_seq_id. docs/formats/derived.md says what is assumed.
//
// One thread at a time.
class FrameworkLinks {
 public:
  // Chains that may go on. Beyond, the oldest gives way: it ends there, and is counted.
  static constexpr size_t kChainsMax = 262'144;
  // Executions of the runtime that are under way, one a thread and core. Beyond, all are forgotten.
  static constexpr size_t kCallsMax = 65'536;

  // `names`: what framework files say, one a stream; without them nothing is known of mapping
  // files.
  explicit FrameworkLinks(std::span<const TimelineStream> streams,
                          std::span<const FrameworkNames> names = {});

  // The chains that a record is part of; valid until the next call. To be called once for each
  // record, in their order.
  const std::vector<LinkPoint>& Of(const TimelineRecord& record);
  LinkCounts counts() const;

  // What a chain is called where a format names it.
  static std::string_view NameOf(LinkKind kind);

 private:
  enum class ShapeKind : uint8_t { kNone, kOperation, kCall, kExecute, kPrepare, kRunning };
  // What one shape holds of it; worked out once.
  struct ShapeAbout {
    bool is_known = false;
    ShapeKind kind = ShapeKind::kNone;
    uint16_t exec_key = ShapeFields::kNone;
    uint16_t pid_key = ShapeFields::kNone;
    uint16_t number_key = ShapeFields::kNone;  // of an operation: "Sequence number"
  };
  struct Key {
    uint32_t owner = 0;  // a worker for sequences, a stream for executions
    LinkKind kind = LinkKind::kExecution;
    uint64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.owner, key.kind, key.id);
    }
  };
  struct Call {
    uint64_t end_ns = 0;
    uint64_t chain = 0;  // 0: a preparation has taken it up
  };
  struct StreamAbout {
    bool is_core = false;
    bool is_framework = false;
    bool has_own_time = false;
    bool has_operations = false;  // of a core: its instance has a framework's stream
    uint32_t worker = 0;          // the same for all cores of a worker
    uint32_t instance = 0;
    uint32_t pid = 0;
  };
  struct Process {
    uint32_t worker = 0;
    bool is_ambiguous = false;
  };

  const ShapeAbout& AboutOf(const TimelineRecord& record);
  static ShapeAbout Examine(const Shape& shape);
  void TakeMapping(std::span<const FrameworkNames> names);
  std::optional<uint32_t> MappedWorker(const StreamAbout& stream) const;
  void TakeOperation(const TimelineRecord& record, const ShapeAbout& about);
  void TakeCall(const TimelineRecord& record);
  void TakeMapped(const TimelineRecord& record, uint64_t end_ns, const OpenSpans::Span* operation);
  void TakeSequence(const TimelineRecord& record);
  void TakeExecute(const TimelineRecord& record);
  void TakePreparation(const TimelineRecord& record, const ShapeAbout& about);
  void TakeRunning(const TimelineRecord& record, const ShapeAbout& about);
  void Remember(const Key& key, uint64_t chain);
  void Add(uint64_t chain, LinkRole role, LinkKind kind) { points_.push_back({chain, role, kind}); }

  std::vector<StreamAbout> streams_;
  // By instance and process id.
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Process> processes_;
  std::vector<ShapeAbout> shapes_;  // by number
  ShapeAbout other_shape_;
  OpenSpans open_;
  MappedOperations mapped_;
  std::vector<MappedOperations::Cause> causes_;  // of the call at hand
  absl::flat_hash_map<Key, uint64_t> chains_;
  std::deque<std::pair<Key, uint64_t>> in_order_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Call> calls_;  // by stream and thread
  std::vector<LinkPoint> points_;
  uint64_t next_chain_ = 1;
  uint64_t chains_forgotten_ = 0;
  LinkCounts counts_;
};

}  // namespace neurontrace
