// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <cstdint>

#include "lib/base/time_units.h"

// The clocks that the tap reads, as a table that a test can replace. Values are ns.
namespace neurontrace::tap {

struct TapClock {
  uint64_t (*monotonic_ns)() = nullptr;
  uint64_t (*realtime_ns)() = nullptr;
  uint64_t (*thread_cpu_ns)() = nullptr;  // processor time of the calling thread; a system call
};

// Reads a clock: without leaving the process for the first two, which are in the vDSO.
inline uint64_t ReadClockNs(clockid_t id) {
  timespec now;
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerSecond + static_cast<uint64_t>(now.tv_nsec);
}

inline constexpr TapClock kSystemTapClock = {
    []() -> uint64_t { return ReadClockNs(CLOCK_MONOTONIC); },
    []() -> uint64_t { return ReadClockNs(CLOCK_REALTIME); },
    []() -> uint64_t { return ReadClockNs(CLOCK_THREAD_CPUTIME_ID); },
};

inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNeverNs = UINT64_MAX;  // a deadline that is never reached

}  // namespace neurontrace::tap
