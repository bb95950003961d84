// SPDX-License-Identifier: Apache-2.0
// Limits of the aggregator's store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

namespace neurontrace::limits {

// Reading a damaged write-ahead log: one write (a longer write counts as damage; the aggregator
// holds less at once), and the places of damage that are named. The last one has the number of
// further places.
inline constexpr size_t kWalRecordBytesMax = size_t{256} << 20;
inline constexpr size_t kWalDamageNamedMax = 1'000;
static_assert(kWalRecordBytesMax >= 2 * kIngestBytesInFlightMax);

// After an unreadable chunk: numbers that are tried for the next one, and how often a walk over a
// stream may try absent numbers, because an agent can leave holes. Beyond: the following chunks are
// reported as unreachable.
inline constexpr uint64_t kChunkWalkProbesMax = 65'536;
inline constexpr uint64_t kChunkWalkMissesMax = 8 * kChunkWalkProbesMax;

// Damage that was found while the database took no writes: bytes of the file that remembers it, and
// streams that the aggregator holds it for until then.
inline constexpr uint64_t kFoundDamageBytesMax = uint64_t{1} << 20;
inline constexpr size_t kFoundDamageStreamsMax = 4'096;

// Retention of continuous captures: chunks of one stream that one step deletes, while writers wait.
inline constexpr uint32_t kTrimChunksPerStep = 512;
// Index entries beyond those that are looked at for chunks that came out of order. What comes out
// of order by more is found too, and waits until what was received before it goes.
inline constexpr uint32_t kTrimLookahead = 64;
// Sequences without a chunk that are asked for one by one; of more the next chunk is sought.
inline constexpr uint64_t kTrimHolesAsked = 8;

static_assert(kTrimLookahead < kTrimChunksPerStep);

}  // namespace neurontrace::limits
