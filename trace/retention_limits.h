// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Limits of continuous captures and their retention.
namespace neurontrace::limits {

// Chunks of one stream that one step deletes, while writers wait.
inline constexpr uint32_t kTrimChunksPerStep = 512;
// Index entries beyond those that are looked at for chunks that came out of order. What comes out
// of order by more is found too, and waits until what was received before it goes.
inline constexpr uint32_t kTrimLookahead = 64;
// Sequences without a chunk that are asked for one by one; of more the next chunk is sought.
inline constexpr uint64_t kTrimHolesAsked = 8;

static_assert(kTrimLookahead < kTrimChunksPerStep);

}  // namespace neurontrace::limits
