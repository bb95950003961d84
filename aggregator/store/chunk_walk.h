// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/store/database.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// What a walk over the chunks of one stream tells, in the order of their sequences.
struct ChunkVisitor {
  std::function<void(uint64_t sequence, std::string_view value)> chunk;
  // One that is there but cannot be read.
  std::function<void(uint64_t sequence, const absl::Status& why)> damaged;
};

// Goes through all chunks of a stream, also past such as RocksDB cannot read. Those are looked for
// below `sequence_end`, where the stream's record says that it ends. DATA_LOSS when what comes
// behind some point cannot be reached at all, or only by a search that has no end: the chunks that
// are there bound the walk, whatever numbers they have. Any thread.
absl::Status WalkChunks(const Database& database, const CaptureId& capture, uint32_t stream,
                        uint64_t sequence_end, const ChunkVisitor& visitor);

}  // namespace neurontrace
