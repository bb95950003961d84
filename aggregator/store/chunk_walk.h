// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/store/database.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Receives the chunks of one stream in the order of their sequences.
struct ChunkVisitor {
  // The value of family `chunks`; valid during the call.
  std::function<void(uint64_t sequence, std::string_view value)> chunk;
  // A chunk that exists but cannot be read.
  std::function<void(uint64_t sequence, const absl::Status& why)> damaged;
};

// Visits all chunks of a stream, including those behind chunks that RocksDB cannot read. Such
// chunks are searched one by one below `sequence_end`, where the stream's record says that it ends.
//
// Fails with DATA_LOSS if the chunks behind some point cannot be reached. The number of look-ups is
// limited (limits::kChunkWalkProbesMax, kChunkWalkMissesMax), because sequences come from agents
// and may have holes of any size. Any thread.
absl::Status WalkChunks(const Database& database, const CaptureId& capture, uint32_t stream,
                        uint64_t sequence_end, const ChunkVisitor& visitor);

}  // namespace neurontrace
