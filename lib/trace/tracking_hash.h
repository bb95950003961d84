// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/hash/hash.h"

namespace neurontrace {

// Where a table looks for the start or stop of a type with a tracking id. Seeded in each process:
// whoever makes up the ids cannot have them meet. Ids of one time are near each other, and eight in
// a row keep places in a row: what is looked up stays in the cache. Any thread.
inline size_t TrackingHash(uint64_t tracking_id, uint16_t type) {
  constexpr uint64_t kRow = 8;
  return absl::HashOf(tracking_id / kRow, type) + tracking_id % kRow;
}

}  // namespace neurontrace
