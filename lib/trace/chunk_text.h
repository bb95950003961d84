// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "lib/trace/decoded_chunk.h"

namespace neurontrace {

// Returns the bytes of a shape's event type and names of keys.
size_t NameBytes(const Shape& shape);

// Fails with INVALID_ARGUMENT if a chunk, decoded with its attributes, exceeds a limit of
// lib/trace/chunk_limits.h. Usual chunks are accepted without a pass over their events. Pure; any
// thread.
absl::Status CheckChunkText(const DecodedChunk& chunk);

}  // namespace neurontrace
