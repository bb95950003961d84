// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/store/foreign_stops.h"
#include "lib/trace/chunk_header.h"

namespace neurontrace {

// What the index says of one chunk; chunks without events have no entry. A plain value.
struct ChunkIndexEntry {
  uint64_t sequence = 0;
  uint64_t first_timestamp_ns = 0;  // raw
  uint64_t last_timestamp_ns = 0;   // raw
  uint32_t event_count = 0;
  uint64_t bytes = 0;  // of the chunk, header and columns
};

// The value of family `chunk_index`, for a chunk of so many bytes; last timestamp and sequence
// are in the key.
inline constexpr uint64_t kChunkIndexVersion = 1;
std::string EncodeChunkIndexValue(const ChunkHeader& header, uint64_t bytes,
                                  const ForeignStops& stops);
// DATA_LOSS for anything that encoding does not write. `stops` may be null where they are of no
// interest.
absl::Status DecodeChunkIndexValue(std::string_view value, ChunkIndexEntry& entry,
                                   ForeignStops* stops);

}  // namespace neurontrace
