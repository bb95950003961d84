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

// Makes the envelope with its checksum; moves the columns. `stream_ref` is the stream's number in
// the Upload call. Any thread.
void ToEnvelope(Chunk chunk, uint32_t stream_ref, v1::ChunkEnvelope* envelope);

// Convert a header alone to and from the bytes that an envelope has. ParseChunkHeader fails with
// INVALID_ARGUMENT, naming what is wrong. Any thread.
std::string SerializeChunkHeader(const ChunkHeader& header);
absl::StatusOr<ChunkHeader> ParseChunkHeader(std::string_view bytes);

// Returns the header after checking the checksum and every limit that the header concerns, without
// decoding the columns. Fails with INVALID_ARGUMENT, naming what is wrong. Any thread.
absl::StatusOr<ChunkHeader> ParseEnvelopeHeader(const v1::ChunkEnvelope& envelope);

// The only validator of chunks from the wire or from disk. It checks the checksum, the header, the
// compressed size, every column, and that the columns match the header. Accepted chunks are safe to
// store and to decode later. Keeps the decoded events until the next call. One thread at a time;
// each thread makes its own.
class ChunkValidator {
 public:
  // Returns the header. Fails with INVALID_ARGUMENT, naming the place; `chunk()` is then empty.
  absl::StatusOr<ChunkHeader> Validate(const v1::ChunkEnvelope& envelope);

  // Returns the events of the last valid chunk. Valid until the next Validate.
  const DecodedChunk& chunk() const { return chunk_; }

 private:
  absl::Status ValidateColumns(const ChunkHeader& header, const std::string& columns);

  std::string columns_;  // uncompressed; chunk_ points into it
  DecodedChunk chunk_;
};

}  // namespace neurontrace
