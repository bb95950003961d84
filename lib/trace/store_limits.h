// SPDX-License-Identifier: Apache-2.0
// Limits of the aggregator's store.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

namespace neurontrace::limits {

// Repair of a damaged write-ahead log: bytes of one write that is read back (a longer one counts as
// damage; the aggregator holds less at once), and damaged places that are named. Beyond, only the
// first of each log is named, and the last message of a log counts its further places.
inline constexpr size_t kWalRecordBytesMax = size_t{256} << 20;
inline constexpr size_t kWalDamageNamedMax = 1'000;
static_assert(kWalRecordBytesMax >= 2 * kIngestBytesInFlightMax);

// Behind an unreadable chunk: sequence numbers that are tried to find the next one, and tries
// without a result in one walk over a stream, as agents may number chunks with holes. Beyond: the
// rest is reported as unreachable.
inline constexpr uint64_t kChunkWalkProbesMax = 65'536;
inline constexpr uint64_t kChunkWalkMissesMax = 8 * kChunkWalkProbesMax;

// Damage that was found while the database accepted no writes: bytes of the file that records it,
// and streams for which the aggregator remembers it until then.
inline constexpr uint64_t kFoundDamageBytesMax = uint64_t{1} << 20;
inline constexpr size_t kFoundDamageStreamsMax = 4'096;

// Retention of continuous captures: chunks of one stream that one step deletes, while writers wait.
inline constexpr uint32_t kTrimChunksPerStep = 512;
// Index entries beyond those that are examined for chunks out of order. A chunk that is further out
// of order is found too, but only once the chunks received before it have been deleted.
inline constexpr uint32_t kTrimLookahead = 64;
// Missing sequence numbers that are looked up one by one; over a longer hole the next chunk is
// searched for.
inline constexpr uint64_t kTrimHolesAsked = 8;

static_assert(kTrimLookahead < kTrimChunksPerStep);

}  // namespace neurontrace::limits
