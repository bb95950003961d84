// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/mapped_operations.h"
#include "aggregator/derive/open_spans.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What FrameworkLinks has found, in records; what was not joined has a counter for each reason.
struct LinkCounts {
  // Operations of frameworks whose process is a worker of the capture.
  uint64_t operations = 0;
  // Of a process that is not a worker of the capture.
  uint64_t operations_elsewhere = 0;
  // Two workers of the instance have that process id.
  uint64_t operations_ambiguous = 0;
  // Without a number for process or thread.
  uint64_t operations_unnamed = 0;
  // The times of their file count from an unknown moment.
  uint64_t operations_own_time = 0;
  // Outermost calls of the runtime on instances with framework traces.
  uint64_t calls = 0;
  // Joined to the innermost operation around them.
  uint64_t calls_joined = 0;
  // Begin in an operation and end after it.
  uint64_t calls_crossing = 0;
  uint64_t calls_outside = 0;  // in no operation of their thread
  uint64_t calls_without_thread = 0;
  // Calls whose nrta_seq_id is in a mapping file.
  uint64_t calls_mapped = 0;
  // An operation of the mapping is the one around the call, or lies in it.
  uint64_t mapped_confirmed = 0;
  // No operation is around the call: those of the mapping are joined.
  uint64_t mapped_added = 0;
  // Another operation is around the call, and is joined.
  uint64_t mapped_contradicted = 0;
  // No operation of the mapping was seen before the call.
  uint64_t mapped_unseen = 0;
  // Operations of mapping files whose worker is not known.
  uint64_t mapped_elsewhere = 0;
  // Operations of mapping files beyond the limits of FrameworkNames and MappedOperations.
  uint64_t mapped_forgotten = 0;
  // Beyond the limits of OpenSpans; includes calls under way.
  uint64_t operations_forgotten = 0;
  uint64_t chains_forgotten = 0;  // beyond kChainsMax
  uint64_t executions = 0;
  // No kbl_exec_pre with their exec_id was seen before them.
  uint64_t executions_unprepared = 0;

  // Returns warnings for users, each at most once.
  std::vector<std::string> Warnings() const;
};

// Why records belong together.
enum class LinkKind : uint8_t {
  // An operation of a framework, and the runtime's calls that it made.
  kFrameworkCall,
  // Spans of a worker with one nrta_seq_id.
  kSequence,
  // The runtime's call, its preparation, and the device's run: by exec_id.
  kExecution,
};

enum class LinkRole : uint8_t { kStart, kStep, kEnd };

// A record's part in a chain. A chain may have a single record if what would follow never came.
struct LinkPoint {
  // Of the chain, from 1 on, unique over all kinds.
  uint64_t id = 0;
  LinkRole role = LinkRole::kStart;
  LinkKind kind = LinkKind::kExecution;
};

// Finds in one pass what caused what:
//   - from a framework's operation to the runtime's calls that it made: by instance, process id,
//     thread id and time, which both took from the same host's clock, and by the framework's
//     mapping files, which list operations for an nrta_seq_id;
//   - from the call (nrt_execute) to its preparation (kbl_exec_pre), which lies within it on its
//     thread, and by the core's exec_id to the device's executions (nc_exec_running);
//   - between the spans of a worker that have one nrta_seq_id.
// docs/formats/derived.md lists the assumptions. Used by one thread at a time.
class FrameworkLinks {
 public:
  // Chains that may continue. Beyond, the oldest ends and is counted.
  static constexpr size_t kChainsMax = 262'144;
  // Calls of nrt_execute that are under way, one for each thread and core. Beyond, all are
  // forgotten.
  static constexpr size_t kCallsMax = 65'536;

  // `names` are those of the framework files, one for each stream. Without them mapping files are
  // not used. Borrows nothing.
  explicit FrameworkLinks(std::span<const TimelineStream> streams,
                          std::span<const FrameworkNames> names = {});

  // Returns the chains that a record is part of; valid until the next call. Must be called once for
  // each record, in the timeline's order.
  const std::vector<LinkPoint>& Of(const TimelineRecord& record);
  LinkCounts counts() const;

  // Returns the name of a kind of chain in formats that show one.
  static std::string_view NameOf(LinkKind kind);

 private:
  enum class ShapeKind : uint8_t { kNone, kOperation, kCall, kExecute, kPrepare, kRunning };
  // What is looked up by name once for each shape.
  struct ShapeAbout {
    bool is_known = false;
    ShapeKind kind = ShapeKind::kNone;
    uint16_t exec_key = ShapeFields::kNone;
    uint16_t pid_key = ShapeFields::kNone;
    uint16_t number_key = ShapeFields::kNone;  // of an operation: "Sequence number"
  };
  // Identifies a chain that later records may continue.
  struct Key {
    // A worker for sequences, a stream for executions.
    uint32_t owner = 0;
    LinkKind kind = LinkKind::kExecution;
    uint64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.owner, key.kind, key.id);
    }
  };
  // The latest nrt_execute of a thread.
  struct Call {
    uint64_t end_ns = 0;
    // 0 once a preparation has continued it.
    uint64_t chain = 0;
  };
  // What is known of a stream before the first record.
  struct StreamAbout {
    bool is_core = false;
    bool is_framework = false;
    bool has_own_time = false;
    // For a core: its instance has a framework's stream.
    bool has_operations = false;
    // The same for all cores of a worker.
    uint32_t worker = 0;
    uint32_t instance = 0;
    uint32_t pid = 0;
  };
  // The worker with a process id on an instance.
  struct Process {
    uint32_t worker = 0;
    bool is_ambiguous = false;
  };

  // Returns what is known of the record's shape; valid until the next call.
  const ShapeAbout& AboutOf(const TimelineRecord& record);
  static ShapeAbout Examine(const Shape& shape);
  // Maps the operations of the mapping files, or counts why they cannot be.
  void AddMapping(std::span<const FrameworkNames> names);
  // Returns the worker that a mapping file belongs to, or nullopt if that is not certain.
  std::optional<uint32_t> MappedWorker(const StreamAbout& stream) const;
  // Records a framework's operation and begins its chain.
  void AddOperation(const TimelineRecord& record, const ShapeAbout& about);
  // Joins a call to the operation around it and to those of its mapping.
  void AddCall(const TimelineRecord& record);
  // Joins a call to the operations that mapping files list for its sequence. `operation` is the
  // innermost around it, or nullptr.
  void AddMapped(const TimelineRecord& record, uint64_t end_ns, const OpenSpans::Span* operation);
  // Joins a span to the others of the worker with its nrta_seq_id.
  void AddSequence(const TimelineRecord& record);
  // Each adds the record's part in the chain of an execution.
  void AddExecute(const TimelineRecord& record);
  void AddPreparation(const TimelineRecord& record, const ShapeAbout& about);
  void HandleRunning(const TimelineRecord& record, const ShapeAbout& about);
  // Makes the chain findable by `key` for later records.
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
  // Entries are in the order of Remember; a key that was used again is in it twice.
  std::deque<std::pair<Key, uint64_t>> in_order_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Call> calls_;  // by stream and thread
  std::vector<LinkPoint> points_;
  uint64_t next_chain_ = 1;
  uint64_t chains_forgotten_ = 0;
  LinkCounts counts_;
};

}  // namespace neurontrace
