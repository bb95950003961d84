// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "aggregator/store/stream_record.h"
#include "lib/trace/ids.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {

class Database;

// Which of a stream's chunks are to go: its oldest, in the order in which they were received, as
// long as one of the first two holds for each.
struct TrimRequest {
  uint64_t before_raw_ns = 0;         // its last event is older
  uint64_t before_sequence = 0;       // its sequence is lower, whatever its events are stamped
  uint64_t bytes_max = ~uint64_t{0};  // ends with the chunk that makes it so many
  uint32_t chunks_max = limits::kTrimChunksPerStep;  // of one step
};

struct Trimmed {
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t bytes = 0;
  uint64_t damaged = 0;    // chunks that could not be read, booked as that
  bool may_go_on = false;  // a further step may find more; never where this one did nothing

  void Add(const Trimmed& more);
};

// One step: deletes chunks, their index entries, and what has expired from the sums of `record`,
// in one write. It need not be on disk on return: what a crash takes back is whole again, and goes
// the next time. On an error nothing has changed. Nobody else may write this stream meanwhile.
absl::StatusOr<Trimmed> TrimStream(Database& database, const CaptureId& capture,
                                   const TrimRequest& request, StreamRecord& record);

}  // namespace neurontrace
