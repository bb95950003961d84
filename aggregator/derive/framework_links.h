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
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/framework_names.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What is under way on each thread: operations of a framework, and calls of the runtime in them.
// Spans come in the order of their starts. One thread at a time.
class OpenSpans {
 public:
  // Spans of one thread under way. Beyond, the outer half is forgotten.
  static constexpr size_t kDepthMax = 4'096;
  // Spans and threads, over all. Beyond, what has ended is swept; if most has not, all is
  // forgotten.
  static constexpr size_t kOpenMax = 262'144;
  // So many are looked at, from the innermost on: files may have spans that enclose nothing.
  static constexpr size_t kSearchMax = 64;

  struct Thread {
    uint32_t worker = 0;
    uint64_t thread_id = 0;
    friend bool operator==(const Thread&, const Thread&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Thread& thread) {
      return H::combine(std::move(h), thread.worker, thread.thread_id);
    }
  };
  struct Span {
    uint64_t end_ns = 0;
    uint64_t chain = 0;                        // of an operation; 0: a call
    std::optional<uint64_t> nrta_seq_id = {};  // of a call
    uint64_t start_ns = 0;                     // set by Add
  };
  struct Place {
    // These enclose it; valid until the next call of Add.
    const Span* innermost = nullptr;
    const Span* operation = nullptr;  // the innermost one
    bool crosses = false;             // of those under way one ends before it does
  };

  // What a span from start_ns to end_ns lies in, on its thread.
  Place Find(const Thread& thread, uint64_t start_ns, uint64_t end_ns);
  void Add(const Thread& thread, uint64_t start_ns, const Span& span);

  // Spans that were forgotten while they were under way.
  uint64_t forgotten() const { return forgotten_; }

 private:
  void Sweep(uint64_t now_ns);

  absl::flat_hash_map<Thread, std::vector<Span>> threads_;
  size_t open_ = 0;  // over all threads; may have ended
  uint64_t forgotten_ = 0;
};

// What FrameworkLinks has found. In records. What has not been joined says why.
struct LinkCounts {
  uint64_t operations = 0;            // of frameworks, where the capture has a worker of that id
  uint64_t operations_elsewhere = 0;  // of a process that is no worker of the capture
  uint64_t operations_ambiguous = 0;  // two workers of the instance have that process id
  uint64_t operations_unnamed = 0;    // no number for a process or a thread
  uint64_t operations_own_time = 0;   // their file's times count from a moment that is not known
  uint64_t calls = 0;                 // outermost calls of the runtime, where operations were seen
  uint64_t calls_joined = 0;          // to the innermost operation around them
  uint64_t calls_crossing = 0;        // begin in an operation and end after it
  uint64_t calls_outside = 0;         // in no operation of their thread
  uint64_t calls_without_thread = 0;
  uint64_t calls_mapped = 0;      // calls whose nrta_seq_id a mapping file names
  uint64_t mapped_confirmed = 0;  // an operation of the mapping is the one that time has, or in it
  uint64_t mapped_added = 0;      // time has none: those of the mapping are joined
  uint64_t mapped_contradicted = 0;  // time has another one, which is joined
  uint64_t mapped_unseen = 0;        // none of the mapping was seen before the call
  uint64_t mapped_elsewhere = 0;     // operations of mapping files, of no worker that is known
  // Of these, beyond the limits of FrameworkNames and MappedOperations.
  uint64_t mapped_forgotten = 0;
  uint64_t operations_forgotten = 0;  // calls under way among them: beyond OpenSpans' limits
  uint64_t chains_forgotten = 0;      // beyond kChainsMax
  uint64_t executions = 0;
  uint64_t executions_unprepared = 0;  // no kbl_exec_pre with their exec_id was seen before them

  // Warnings for people; each is reported once.
  std::vector<std::string> Warnings() const;
};

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
