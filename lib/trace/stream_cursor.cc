// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

StreamCursor CursorAfter(const ChunkHeader& header) {
  StreamCursor cursor{.stream = header.stream,
                      .next_sequence = header.sequence + 1,
                      .source_position = header.source_position,
                      .source_skip = header.source_skip,
                      .ended = header.end_of_stream,
                      .events_before = header.events_before + header.events_accounted(),
                      .losses_before = header.losses_before,
                      .sequence_mark = header.sequence_mark};
  // The header's own losses happened before the next chunk. Times are dropped, as the account
  // consists of sums.
  for (const Loss& loss : header.losses) AddLoss(WithoutTimes(loss), cursor.losses_before);
  return cursor;
}

}  // namespace neurontrace
