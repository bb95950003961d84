// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/exporter.h"

namespace neurontrace {

// Arrows between events of one execution: from what asked for it to what the runtime and the device
// did of it, by `nrta_seq_id` of a worker; and from the runtime's preparation (kbl_exec_pre) to the
// device's execution (nc_exec_running), by `exec_id` of a core. One thread at a time.
class ExecutionFlows {
 public:
  static constexpr size_t kOpenMax = 262'144;  // the oldest gives way: its arrow ends there

  enum class Role : uint8_t { kStart, kStep, kEnd };
  struct Point {
    uint64_t id = 0;
    Role role = Role::kStart;
    std::string_view category;  // constant
  };

  void Begin(const TimelineHeader& header);
  // The arrows that touch a record's beginning; valid until the next call. To be called once for
  // each record, in their order.
  const std::vector<Point>& Of(const TimelineRecord& record);

 private:
  struct Key {
    uint32_t owner = 0;
    bool is_execution = false;
    uint64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.owner, key.is_execution, key.id);
    }
  };
  uint64_t Start(const Key& key);

  std::vector<uint32_t> worker_of_;  // by stream
  absl::flat_hash_map<Key, uint64_t> open_;
  std::deque<std::pair<Key, uint64_t>> in_order_;
  std::vector<Point> points_;
  uint64_t next_id_ = 1;
};

}  // namespace neurontrace
