// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The limits of clock evidence, with what happens at each; trace/limits.h has all others.
namespace neurontrace::limits {

// One batch of evidence. An agent gives a batch well before it has so many entries; a received one
// beyond either is refused, with the call.
inline constexpr size_t kClockBatchEntriesMax = 4'096;
inline constexpr size_t kClockBatchBytesMax = 256u << 10;  // encoded
// Agent: batches that wait for an aggregator; at half a hundred bytes a second without one they
// last for most of a day. Beyond: the oldest are dropped, and counted.
inline constexpr size_t kClockBacklogBytesMax = size_t{4} << 20;
inline constexpr size_t kClockBacklogBatchesMax = 65'536;
// Aggregator: calls of the ClockGateway that report, at once; beyond: refused.
inline constexpr size_t kClockCallsMax = 32'768;

static_assert(kClockBatchBytesMax < kClockBacklogBytesMax, "a backlog holds any batch");

}  // namespace neurontrace::limits
