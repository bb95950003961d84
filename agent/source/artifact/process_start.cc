// SPDX-License-Identifier: Apache-2.0
#include "agent/source/artifact/process_start.h"

#include <unistd.h>

#include <ctime>

#include "base/time_units.h"

namespace neurontrace {
namespace {

uint64_t NowNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t ProcessStartNs(uint64_t start_time_ticks) {
  static const auto kTicksPerSecond = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const uint64_t booted_ns = NowNs(CLOCK_REALTIME) - NowNs(CLOCK_BOOTTIME);
  return booted_ns + start_time_ticks / kTicksPerSecond * kNsPerSecond +
         start_time_ticks % kTicksPerSecond * kNsPerSecond / kTicksPerSecond;
}

}  // namespace neurontrace
