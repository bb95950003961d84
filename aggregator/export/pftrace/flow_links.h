// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Gives the arrows of framework traces ids of our own: theirs recur in every file. A start and an
// end belong together by stream, category and id, whichever comes first in time (an accelerator's
// clock can be ahead of its host's). Ends whose start never comes are written all the same, and
// counted. One thread at a time.
class FlowLinks {
 public:
  static constexpr size_t kOpenMax = 262'144;  // the oldest gives way: its arrow is not drawn

  // The id to write where this start, step or end of an arrow stands.
  uint64_t Link(const TimelineRecord& record);

  uint64_t points() const { return points_; }
  // Ends seen so far that have no start.
  uint64_t orphan_ends() const { return orphan_ends_; }

 private:
  struct Key {
    uint32_t stream = 0;
    uint64_t category = 0;
    uint64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.category, key.id);
    }
  };
  struct Open {
    uint64_t id = 0;
    bool has_start = false;
    uint32_t ends = 0;  // while it has none
  };
  static Key KeyOf(const TimelineRecord& record);
  Open& Insert(const Key& key);

  absl::flat_hash_map<Key, Open> open_;
  std::deque<std::pair<Key, uint64_t>> in_order_;  // keys with the id they had; may be closed
  uint64_t next_id_ = 1;
  uint64_t points_ = 0;
  uint64_t orphan_ends_ = 0;
};

}  // namespace neurontrace
