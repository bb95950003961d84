// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/clock_limits.h"

// Limits of the clock evidence that an aggregator stores of its agents. Evidence beyond one of them
// is refused and counted, the newest first; its agent deletes it.
namespace neurontrace::limits {

// Rows of one instance with their keys, over all of its boots: in an hour on average, and at once.
// Ten times the evidence of an agent that measures all the time, and four times that of an agent
// that was without an aggregator for half a day.
inline constexpr uint64_t kClockHostBytesPerHourMax = uint64_t{8} << 20;
inline constexpr uint64_t kClockHostBytesAtOnceMax = uint64_t{16} << 20;
// The cost of a row in addition to its ids and its value.
inline constexpr size_t kClockRowOverheadBytes = 64;
// Instances whose allowance is partly used: as many as may report at once.
inline constexpr size_t kClockHostsMax = kClockCallsMax;

static_assert(kClockHostBytesAtOnceMax >= 4 * kClockBacklogBytesMax);

}  // namespace neurontrace::limits
