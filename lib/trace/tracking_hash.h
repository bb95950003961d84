// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"

namespace neurontrace {

// Returns the hash of a start or stop of a type with a tracking id, for tables of open spans. It is
// seeded in each process: a worker that makes up ids cannot make them collide. Ids of one time are
// close to each other, and eight in a row keep adjacent places, so that look-ups stay in the cache.
// Any thread.
inline size_t TrackingHash(uint64_t tracking_id, uint16_t type) {
  constexpr uint64_t kRow = 8;
  return absl::HashOf(tracking_id / kRow, type) + tracking_id % kRow;
}

}  // namespace neurontrace
