// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/clock_limits.h"

// Limits of the clock evidence that an aggregator stores of its agents. Whatever is beyond one is
// refused, the newest, and counted; its agent lets go of it.
namespace neurontrace::limits {

// Of one instance, whichever boots it reports: rows with their keys, in an hour on average, and at
// once. Ten times what an agent sends that measures all the time, and four times what one sends
// that was without an aggregator for half a day.
inline constexpr uint64_t kClockHostBytesPerHourMax = uint64_t{8} << 20;
inline constexpr uint64_t kClockHostBytesAtOnceMax = uint64_t{16} << 20;
// What a row costs beside its ids and its value.
inline constexpr size_t kClockRowOverheadBytes = 64;
// Instances whose allowance is not whole: as many as may report at once.
inline constexpr size_t kClockHostsMax = kClockCallsMax;

static_assert(kClockHostBytesAtOnceMax >= 4 * kClockBacklogBytesMax);

}  // namespace neurontrace::limits
