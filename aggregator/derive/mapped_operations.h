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

// What mapping files say: which operations of a framework each of the runtime's sequences was
// submitted for, and which operations of these have been seen. First all that is mapped (Map, then
// Settle), then operations and questions in the order of their times. One thread at a time.
class MappedOperations {
 public:
  // Numbers whose operations are remembered. Beyond, the one that was first seen longest ago gives
  // way, and is counted.
  static constexpr size_t kSeenMax = 262'144;
  // Numbers of one sequence: the lowest. Each is looked for at each call of the sequence. Further
  // ones are not used, and counted.
  static constexpr size_t kPerSequenceMax = 64;
  // Of one number the latest operations.
  static constexpr size_t kPerNumberMax = 8;

  struct Operation {
    uint64_t chain = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t thread_id = 0;
  };
  struct Call {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    std::optional<uint64_t> thread_id;
  };
  struct Cause {
    uint64_t chain = 0;
    uint64_t start_ns = 0;
    bool is_on_thread = false;  // of the call
    bool encloses = false;      // and the call lies in it
  };

  // The operation with this number of the framework was one that the sequence was submitted for.
  void Map(uint32_t worker, uint64_t nrta_seq_id, uint64_t number);
  // All is mapped.
  void Settle();
  bool empty() const { return mapped_.empty(); }

  // Whether anything is mapped to the number.
  bool Names(uint32_t worker, uint64_t number) const;
  void Saw(uint32_t worker, uint64_t number, const Operation& operation);

  // False where nothing is mapped to the sequence. `causes` becomes the operations, one for each
  // number of which one was seen that began not after the call: the innermost around the call, else
  // the latest on its thread, else the latest.
  bool Find(uint32_t worker, uint64_t nrta_seq_id, const Call& call,
            std::vector<Cause>& causes) const;

  // Numbers that gave way, and those beyond kPerSequenceMax.
  uint64_t forgotten() const { return forgotten_; }

 private:
  struct Mapped {
    uint32_t worker = 0;
    uint64_t nrta_seq_id = 0;
    uint64_t number = 0;
    friend auto operator<=>(const Mapped&, const Mapped&) = default;
  };
  using Number = std::pair<uint32_t, uint64_t>;  // worker, number

  void KeepFew();

  std::vector<Mapped> mapped_;   // sorted
  std::vector<Number> numbers_;  // sorted
  absl::flat_hash_map<Number, std::vector<Operation>> seen_;
  std::deque<Number> in_order_;
  uint64_t forgotten_ = 0;
};

}  // namespace neurontrace
