// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Whose events an execution was found in.
enum class ExecutionSource : uint8_t {
  kDevice,  // nc_exec_running: the device ran
  // nrt_execute: the host's call, which tells little about when the device ran.
  kRuntime,
};

// One execution of a model on one logical core. Times are reference time. A plain value.
struct Execution {
  // The core's: an index into TimelineReader::streams().
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;
  // Among executions of its source in this stream, in the order of starts, from 0.
  uint64_t number = 0;
  std::optional<uint64_t> exec_id;
  // Of the physical core that began first.
  uint64_t start_ns = 0;
  // Of the one that ended last.
  uint64_t end_ns = 0;
  // How long at least one of them ran.
  uint64_t busy_ns = 0;
  // Spans that were joined: one for each physical core.
  uint32_t parts = 1;
  // When the runtime began to prepare it (kbl_exec_pre).
  std::optional<uint64_t> prepared_ns;
  std::optional<uint64_t> model_id;
  // As KeptName shortens it; empty if it is not known.
  std::string model_name;
  // A part of it has no stop: it ends where its stream ends.
  bool is_open = false;
  // Of start_ns.
  RecordBounds::Moment bound;
};

// Counts of executions, unless stated otherwise.
struct ExecutionCounts {
  uint64_t device = 0;
  uint64_t runtime = 0;
  // Of both sources.
  uint64_t open = 0;
  // Device spans whose start is lost: in no execution.
  uint64_t start_lost = 0;
  // Device spans beyond kPendingMax: each is an execution of its own.
  uint64_t not_joined = 0;
};

// Finds executions in a timeline. If two physical cores form a logical one (LNC 2), the device
// reports a span for each with the same exec_id: they are one execution, as long as the union of
// both. An exec_id is unique only within one stream, and may return later: what begins more than
// kJoinNs after all parts have ended is another execution. A device span without an exec_id is an
// execution of its own. docs/formats/derived.md defines the figures.
//
// Used by one thread at a time; the streams and the table must outlive it. Executions are what
// steps, busy times and latencies are made of.
class ExecutionFinder {
 public:
  // How far apart two parts of one execution may be.
  static constexpr uint64_t kJoinNs = 1'000'000;
  // Device executions that wait for further parts. Beyond, a span is returned at once.
  static constexpr size_t kPendingMax = 65'536;
  // Preparations that are remembered for each stream; a newer one replaces an older one.
  static constexpr size_t kPreparedPerStream = 256;

  ExecutionFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields)
      : bounds_(streams), fields_(fields) {}

  // Takes a preparation from before the first batch. Such calls come in the order of time, before
  // any batch.
  void RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                         std::string_view model_name);
  // Takes the next batch and appends the executions that no later batch can change, those of each
  // call in the order of their ends.
  void Take(const TimelineBatch& batch, std::vector<Execution>& done);
  // Appends the remaining executions. Called once, after the last batch.
  void Finish(std::vector<Execution>& done);
  // Returns the counts so far.
  const ExecutionCounts& counts() const { return counts_; }

 private:
  // A device execution that further parts may join. `covered_until_ns` is the end of the union of
  // the parts so far.
  struct Pending {
    Execution execution;
    uint64_t covered_until_ns = 0;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // stream, exec_id
  // The latest preparation in its slot.
  struct Prepared {
    uint64_t exec_id = 0;
    uint64_t start_ns = 0;  // 0: none
  };
  struct Numbers {
    uint64_t device = 0;
    uint64_t runtime = 0;
  };

  void RecordPreparation(const TimelineRecord& record, const ShapeFields& fields);
  // Take a span of the device, which may join others, or a call of the host. A device span without
  // an exec_id and every call of the host are returned at once.
  void AddDevice(const TimelineRecord& record, const ShapeFields& fields,
                 std::vector<Execution>& done);
  void AddRuntime(const TimelineRecord& record, const ShapeFields& fields,
                  std::vector<Execution>& done);
  // Makes an execution of its first span and numbers it.
  Execution Begin(const TimelineRecord& record, const ShapeFields& fields, ExecutionSource source);
  // Adds what kbl_exec_pre reported about the execution.
  void RecordRuntimeFacts(Execution& execution);
  // Adds another physical core's span to the execution.
  static void Join(const TimelineRecord& record, Pending& pending);
  // Counts and appends an execution that nothing can change any more.
  void Emit(Execution&& execution, std::vector<Execution>& done);
  // Appends what no part can join any more: all that ended more than kJoinNs before `time_ns`.
  void CloseBefore(uint64_t time_ns, std::vector<Execution>& done);

  RecordBounds bounds_;
  ShapeFieldTable& fields_;
  ExecutionCounts counts_;
  ModelNames models_;
  absl::flat_hash_map<uint32_t, Numbers> numbers_;
  absl::flat_hash_map<uint32_t, std::vector<Prepared>> prepared_;  // slot exec_id % size
  absl::flat_hash_map<Key, Pending> pending_;
};

}  // namespace neurontrace
