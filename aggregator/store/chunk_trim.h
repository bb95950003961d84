// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/ids.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {

class Database;

// Selects the chunks of a stream that expire: the oldest ones, in the order in which they were
// received, while one of the first two conditions holds for each.
struct TrimRequest {
  uint64_t before_raw_ns = 0;         // its last event is older, raw
  uint64_t before_sequence = 0;       // its sequence is lower, whatever its timestamps
  uint64_t bytes_max = ~uint64_t{0};  // stops after the chunk that reaches this sum
  uint32_t chunks_max = limits::kTrimChunksPerStep;  // per step
};

// What one step, or several, removed.
struct Trimmed {
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t damaged = 0;          // unreadable chunks, removed and booked as losses
  bool can_remove_more = false;  // another step may remove more; false if this one did nothing

  void Add(const Trimmed& more);
};

// Performs one step: deletes chunks and their index entries and moves what has expired out of the
// sums of `record`, in one write. That write is not synced: after a crash the chunks are whole
// again, and expire the next time. A damaged chunk in the way is booked as a loss in a second,
// synced write.
//
// Fails with the error of the database; `record` then describes what is stored. The caller makes
// sure that nothing else writes this stream meanwhile. See docs/decisions/0018.
absl::StatusOr<Trimmed> TrimStream(Database& database, const CaptureId& capture,
                                   const TrimRequest& request, StreamRecord& record);

}  // namespace neurontrace
