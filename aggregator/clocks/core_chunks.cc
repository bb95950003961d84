// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/core_chunks.h"

#include <algorithm>

#include "base/status.h"
#include "trace/event_chunk.h"

namespace neurontrace {

absl::Status CoreChunks::ForEach(uint32_t stream, const RealtimeWindow& window,
                                 const std::function<void(const DecodedChunk&)>& visit) {
  const StreamReader chunks = reader_.Stream(stream);
  sequences_.clear();
  ChunkIndexIterator it = chunks.Index(window.begin_ns);
  for (; it.Valid(); it.Next()) {
    if (it.entry().first_timestamp_ns <= window.end_ns) sequences_.push_back(it.entry().sequence);
  }
  RETURN_IF_ERROR(it.status());
  std::sort(sequences_.begin(), sequences_.end());
  for (const uint64_t sequence : sequences_) {
    absl::Status read = chunks.ReadChunk(sequence, stored_);
    if (read.ok()) read = UncompressColumns(stored_.columns(), stored_.columns_bytes(), columns_);
    if (read.ok()) read = chunk_.Decode(columns_);
    if (absl::IsDataLoss(read) || absl::IsInvalidArgument(read) || absl::IsNotFound(read)) {
      ++unreadable_;
      continue;
    }
    RETURN_IF_ERROR(read);
    visit(chunk_);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
