// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/trace/limits.h"

// Limits of captures on demand, besides those of limits.h.
namespace neurontrace::limits {

// Aggregator: a capture selects workers of an agent that was connected this shortly before it
// began. Of an agent that has been away for longer only the instance is named.
inline constexpr uint64_t kAgentLostForNs = 600'000'000'000;
static_assert(kAgentLostForNs < kAgentMissedForNs);
// Aggregator: how long a preview counts, and how long an unwatched preview is kept.
inline constexpr uint64_t kPreviewMeasureNs = 2'000'000'000;
inline constexpr uint64_t kPreviewKeptNs = 60'000'000'000;
// Aggregator: how often what a capture has stored is compared with what it may.
inline constexpr uint64_t kQuotaCheckNs = 250'000'000;
// Aggregator: how often a record whose workers change is written. Orders to agents are written at
// once.
inline constexpr uint64_t kRecordSaveNs = 100'000'000;

}  // namespace neurontrace::limits
