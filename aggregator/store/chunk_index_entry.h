// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/store/foreign_stops.h"
#include "lib/trace/chunk_header.h"

namespace neurontrace {

// The index's description of one chunk, by which readers choose chunks without reading them. Chunks
// without events have no entry. A plain value.
struct ChunkIndexEntry {
  uint64_t sequence = 0;
  uint64_t first_timestamp_ns = 0;  // raw
  uint64_t last_timestamp_ns = 0;   // raw
  uint32_t event_count = 0;
  uint64_t bytes = 0;  // of the chunk: header and compressed columns
};

// First varint of each value; another number is refused.
inline constexpr uint64_t kChunkIndexVersion = 1;
// Returns the value of family `chunk_index` for a chunk of `bytes` bytes. Last timestamp and
// sequence are in the key. Tracking ids are stored as differences and timestamps as increments, so
// that most stops take a few bytes.
std::string EncodeChunkIndexValue(const ChunkHeader& header, uint64_t bytes,
                                  const ForeignStops& stops);
// Fills `entry`, but for what is in the key, and `stops`, which may be null if they are not needed.
// Fails with DATA_LOSS for bytes that encoding does not write. Without `stops` the bytes of the
// stops are not looked at.
absl::Status DecodeChunkIndexValue(std::string_view value, ChunkIndexEntry& entry,
                                   ForeignStops* stops);

}  // namespace neurontrace
