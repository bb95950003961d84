// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/event_chunk.h"
#include "neurontrace/v1/chunk.pb.h"

// A chunk as it travels and is stored: neurontrace.v1.ChunkEnvelope.
namespace neurontrace {

// Makes the envelope, checksum included, and takes the columns over. Any thread.
void ToEnvelope(Chunk chunk, uint32_t stream_ref, v1::ChunkEnvelope* envelope);

// A header by itself, as it is in an envelope. INVALID_ARGUMENT names what is wrong. Any
// thread.
std::string SerializeChunkHeader(const ChunkHeader& header);
absl::StatusOr<ChunkHeader> ParseChunkHeader(std::string_view bytes);

// The header alone, after checking the checksum and every limit that the header touches.
// INVALID_ARGUMENT names what is wrong. Any thread.
absl::StatusOr<ChunkHeader> ParseEnvelopeHeader(const v1::ChunkEnvelope& envelope);

// The one validator of what comes over the wire or from disk: checksum, header, compressed size,
// every column, and that the columns match the header. What it accepts is safe to store and
// to decode later. Holds the decoded events until the next call. One thread at a time; make one for
// each thread.
class ChunkValidator {
 public:
  // INVALID_ARGUMENT with the place; `chunk()` is then empty.
  absl::StatusOr<ChunkHeader> Validate(const v1::ChunkEnvelope& envelope);

  const DecodedChunk& chunk() const { return chunk_; }

 private:
  absl::Status ValidateColumns(const ChunkHeader& header, const std::string& columns);

  std::string columns_;  // uncompressed; chunk_ points into it
  DecodedChunk chunk_;
};

}  // namespace neurontrace
