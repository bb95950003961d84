// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "lib/trace/chunk_format.h"
#include "lib/trace/limits.h"

// Limits of a chunk's content once it is read. A chunk contains a text once, however often events
// refer to it, but a reader of events processes it each time. Without limits a small chunk could
// expand to gigabytes. A builder closes a chunk before it reaches any of these; a received chunk
// beyond one is refused for good.
namespace neurontrace::limits {

// All strings together: a reader holds them while it processes the chunk.
inline constexpr size_t kChunkStringBytesMax = kChunkBytesMax;

// Event types and names of keys, of all shapes: a reader keeps a copy of the texts for each shape,
// even if it has no events.
inline constexpr size_t kChunkNameBytesMax = kChunkBytesMax;

// The names and texts of all events, which is about the size of an export of the chunk. As much as
// its columns may have, as if each text were stored where it is used.
inline constexpr size_t kChunkTextBytesMax = kChunkColumnsBytesMax;

static_assert(chunk_format::kBuilderBytesMax <= kChunkStringBytesMax,
              "no builder makes more, without a count of its own");
static_assert(chunk_format::kBuilderItemBytesMax <= kChunkNameBytesMax,
              "one shape must fit into an empty chunk");
static_assert(2 * chunk_format::kBuilderItemBytesMax <= kChunkTextBytesMax,
              "one event, names and texts, must fit into an empty chunk");

}  // namespace neurontrace::limits
