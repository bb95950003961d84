// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {

// What mapping files contain: the operations of a framework that each of the runtime's sequences
// was submitted for, and which of these operations were seen. First everything is mapped (Map, then
// Settle), then operations and questions follow in the order of their times. Used by one thread at
// a time.
class MappedOperations {
 public:
  // Numbers whose operations are remembered. Beyond, the one that was first seen longest ago is
  // forgotten and counted.
  static constexpr size_t kSeenMax = 262'144;
  // Numbers of one sequence, the lowest ones, because each call of the sequence looks for all of
  // them. Further ones are not used, and are counted.
  static constexpr size_t kPerSequenceMax = 64;
  // The latest operations of one number that are remembered.
  static constexpr size_t kPerNumberMax = 8;

  // An operation that was seen. Times are reference time.
  struct Operation {
    uint64_t chain = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t thread_id = 0;
  };
  // A call of the runtime.
  struct Call {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    std::optional<uint64_t> thread_id;
  };
  // An operation that a call was made for.
  struct Cause {
    uint64_t chain = 0;
    uint64_t start_ns = 0;
    // It ran on the call's thread.
    bool is_on_thread = false;
    // It also encloses the call.
    bool encloses = false;
  };

  // Records that the sequence was submitted for the framework's operation with this number. May be
  // repeated for the same sequence and number.
  void Map(uint32_t worker, uint64_t nrta_seq_id, uint64_t number);
  // Sorts what was mapped. Called once, after the last Map.
  void Settle();
  bool empty() const { return mapped_.empty(); }

  // Returns whether any sequence is mapped to the number.
  bool Names(uint32_t worker, uint64_t number) const;
  // Remembers an operation. Only for numbers that Names confirms.
  void Observe(uint32_t worker, uint64_t number, const Operation& operation);

  // Returns false if nothing is mapped to the sequence. Replaces `causes` by one operation for each
  // of its numbers with an operation that began no later than the call: the innermost around the
  // call, else the latest on its thread, else the latest. Takes time for at most kPerSequenceMax
  // numbers with kPerNumberMax operations each.
  bool Find(uint32_t worker, uint64_t nrta_seq_id, const Call& call,
            std::vector<Cause>& causes) const;

  // Numbers that were forgotten, and those beyond kPerSequenceMax.
  uint64_t forgotten() const { return forgotten_; }

 private:
  struct Mapped {
    uint32_t worker = 0;
    uint64_t nrta_seq_id = 0;
    uint64_t number = 0;
    friend auto operator<=>(const Mapped&, const Mapped&) = default;
  };
  using Number = std::pair<uint32_t, uint64_t>;  // worker, number

  // Applies kPerSequenceMax.
  void KeepRecent();

  // Holds each sequence with each of its numbers.
  std::vector<Mapped> mapped_;  // sorted
  // Holds all numbers, each once.
  std::vector<Number> numbers_;  // sorted
  // Holds, by number, the latest operations in the order of their starts.
  absl::flat_hash_map<Number, std::vector<Operation>> seen_;
  // Holds the numbers in the order in which they were first seen.
  std::deque<Number> in_order_;
  uint64_t forgotten_ = 0;
};

}  // namespace neurontrace
