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

enum class ExecutionSource : uint8_t {
  kDevice,   // nc_exec_running: the device ran
  kRuntime,  // nrt_execute: the host's call, which says little of when the device ran
};

// One execution of a model on one logical core. Times are reference time. A plain value.
struct Execution {
  uint32_t stream = 0;  // the core's: index into TimelineReader::streams()
  ExecutionSource source = ExecutionSource::kDevice;
  uint64_t number = 0;  // of its source in this stream, in the order of starts, from 0
  std::optional<uint64_t> exec_id;
  uint64_t start_ns = 0;                // of the physical core that began first
  uint64_t end_ns = 0;                  // of the one that ended last
  uint64_t busy_ns = 0;                 // in which at least one of them ran
  uint32_t parts = 1;                   // spans that it was joined from: one for each physical core
  std::optional<uint64_t> prepared_ns;  // the runtime began to prepare it (kbl_exec_pre)
  std::optional<uint64_t> model_id;
  std::string model_name;      // empty: not known; what KeptName leaves
  bool is_open = false;        // a part of it has no stop: it ends where its stream ends
  RecordBounds::Moment bound;  // of start_ns
};

struct ExecutionCounts {
  uint64_t device = 0;
  uint64_t runtime = 0;
  uint64_t open = 0;        // among these
  uint64_t start_lost = 0;  // device spans of which only the stop is known: in no execution
  uint64_t not_joined = 0;  // beyond kPendingMax: each span by itself
};

// Finds executions in a timeline. At two physical cores a logical one (LNC 2) the device reports a
// span for each, with the same exec_id: they are one execution, as long as the union of both. An
// exec_id is unique only in one stream, and may come again later: what begins more than kJoinNs
// after all parts have ended is another execution. A device span without an exec_id is an execution
// by itself.
//
// One thread at a time; the streams and the table must outlive it.
class ExecutionFinder {
 public:
  static constexpr uint64_t kJoinNs = 1'000'000;
  static constexpr size_t kPendingMax = 65'536;
  static constexpr size_t kPreparedPerStream = 256;  // the older gives way

  ExecutionFinder(std::span<const TimelineStream> streams, ShapeFieldTable& fields)
      : bounds_(streams), fields_(fields) {}

  // A preparation from before the first batch: by time, as those in batches.
  void NotePreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                       std::string_view model_name);
  // Takes a batch, and appends the executions that nothing in a later one can change: of each call
  // in the order of their ends.
  void Take(const TimelineBatch& batch, std::vector<Execution>& done);
  // Appends those that are left.
  void Finish(std::vector<Execution>& done);
  const ExecutionCounts& counts() const { return counts_; }

 private:
  struct Pending {
    Execution execution;
    uint64_t covered_until_ns = 0;
  };
  using Key = std::pair<uint32_t, uint64_t>;  // stream, exec_id
  struct Prepared {
    uint64_t exec_id = 0;
    uint64_t start_ns = 0;  // 0: none
  };
  struct Numbers {
    uint64_t device = 0;
    uint64_t runtime = 0;
  };

  void NotePreparation(const TimelineRecord& record, const ShapeFields& fields);
  void TakeDevice(const TimelineRecord& record, const ShapeFields& fields,
                  std::vector<Execution>& done);
  void TakeRuntime(const TimelineRecord& record, const ShapeFields& fields,
                   std::vector<Execution>& done);
  Execution Begin(const TimelineRecord& record, const ShapeFields& fields, ExecutionSource source);
  // What kbl_exec_pre said of it.
  void NoteRuntimeFacts(Execution& execution);
  static void Join(const TimelineRecord& record, Pending& pending);
  void GiveOut(Execution&& execution, std::vector<Execution>& done);
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
