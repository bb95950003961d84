// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/trace/decoded_chunk.h"

namespace neurontrace {

// Bytes of a shape's event type and names of keys.
size_t NameBytes(const Shape& shape);

// INVALID_ARGUMENT where a chunk, decoded with its attributes, is over a limit of
// lib/trace/chunk_limits.h. Of a usual chunk no event is looked at. Any thread.
absl::Status CheckChunkText(const DecodedChunk& chunk);

}  // namespace neurontrace
