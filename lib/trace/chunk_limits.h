// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "lib/trace/chunk_format.h"
#include "lib/trace/limits.h"

// As lib/trace/limits.h, for decoded chunks. A chunk contains a text once, however often it is
// referred to, but a reader of events sees it each time. A builder closes a chunk before any of
// these limits; a received chunk beyond one is permanently refused.
namespace neurontrace::limits {

// All strings together: a reader holds them while it is in the midst of the chunk.
inline constexpr size_t kChunkStringBytesMax = kChunkBytesMax;

// Event types and names of keys, of all shapes: a reader keeps each shape with its own texts, also
// a shape without events.
inline constexpr size_t kChunkNameBytesMax = kChunkBytesMax;

// The names and the texts of all events: what an export of the chunk writes, about. As much as its
// columns may have, as if each text stood where it is used.
inline constexpr size_t kChunkTextBytesMax = kChunkColumnsBytesMax;

static_assert(chunk_format::kBuilderBytesMax <= kChunkStringBytesMax,
              "no builder makes more, without a count of its own");
static_assert(chunk_format::kBuilderItemBytesMax <= kChunkNameBytesMax,
              "one shape must fit into an empty chunk");
static_assert(2 * chunk_format::kBuilderItemBytesMax <= kChunkTextBytesMax,
              "one event, names and texts, must fit into an empty chunk");

}  // namespace neurontrace::limits
