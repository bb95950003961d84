// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace neurontrace {

// Finds the order of a chunk's events by timestamp; equal timestamps keep their order of arrival.
// Reuses its memory from call to call. One thread at a time.
class TimestampOrder {
 public:
  // Returns the positions of `timestamps` (at most limits::kChunkEventsMax) in ascending order,
  // valid until the next call; empty if they are ascending already.
  std::span<const uint32_t> Sort(std::span<const uint64_t> timestamps);

 private:
  std::vector<uint64_t> keys_;
  std::vector<uint64_t> spare_;
  std::vector<uint32_t> order_;
};

}  // namespace neurontrace
