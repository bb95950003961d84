// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// The state of one stream in the store: where a producer continues. The store's answer to an agent
// that connects. A plain value.
//
// With next_sequence 0 and no core it represents a worker that takes part and has nothing stored
// yet.
struct StreamCursor {
  StreamIdentity stream;
  uint64_t next_sequence = 0;
  uint64_t source_position = 0;  // of the last stored chunk, as its producer wrote it
  uint32_t source_skip = 0;
  bool ended = false;
  uint64_t events_before = 0;       // in the chunks before next_sequence, stored or lost
  std::vector<Loss> losses_before;  // recorded in those chunks, summed by place and reason
  uint64_t sequence_mark = 0;       // of the last stored chunk
  friend bool operator==(const StreamCursor&, const StreamCursor&) = default;
};

// Returns the cursor of a stream whose last chunk has this header.
StreamCursor CursorAfter(const ChunkHeader& header);

}  // namespace neurontrace
