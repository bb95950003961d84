// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// CLOCK_REALTIME, ns, of the start of a process by field 22 of its /proc/PID/stat, in clock ticks
// since boot (CLOCK_BOOTTIME of the reader's time namespace). As exact as a tick, and by what
// CLOCK_REALTIME shows now.
uint64_t ProcessStartNs(uint64_t start_time_ticks);

}  // namespace neurontrace
