// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// What the store holds of one stream: where a producer continues.
//
// With next_sequence 0 and no core it stands for a worker that takes part and of which nothing is
// stored yet.
struct StreamCursor {
  StreamIdentity stream;
  uint64_t next_sequence = 0;
  uint64_t source_position = 0;  // of the last stored chunk, as its producer wrote it
  uint32_t source_skip = 0;
  bool ended = false;
  uint64_t events_before = 0;       // in the chunks before next_sequence, stored or lost
  std::vector<Loss> losses_before;  // told in those chunks, summed by place and reason
  uint64_t sequence_mark = 0;       // of the last stored chunk
  friend bool operator==(const StreamCursor&, const StreamCursor&) = default;
};

// Where a stream stands when `header` is its last chunk.
StreamCursor CursorBehind(const ChunkHeader& header);

}  // namespace neurontrace
