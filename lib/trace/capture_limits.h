// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits of captures on demand, besides those of limits.h.
namespace neurontrace::limits {

// Aggregator: the workers of an agent that disconnected this shortly before a capture began count
// among the selected ones. For an agent that has been away for longer, only the instance is named.
inline constexpr uint64_t kAgentLostForNs = 600'000'000'000;
static_assert(kAgentLostForNs < kAgentMissedForNs);
// Aggregator: how long a preview counts events, and how long one that nobody watched is kept.
inline constexpr uint64_t kPreviewMeasureNs = 2'000'000'000;
inline constexpr uint64_t kPreviewKeptNs = 60'000'000'000;
// Aggregator: interval of comparing the stored bytes of a capture with its budget.
inline constexpr uint64_t kQuotaCheckNs = 250'000'000;
// Aggregator: longest delay before changes of a capture's workers are written to its record. Orders
// to agents are written at once.
inline constexpr uint64_t kRecordSaveNs = 100'000'000;
// Aggregator: tags that people add to a capture after its start, and the bytes of one. A change
// beyond either is refused.
inline constexpr size_t kCaptureTagsMax = 32;
inline constexpr size_t kCaptureTagBytesMax = 128;

}  // namespace neurontrace::limits
