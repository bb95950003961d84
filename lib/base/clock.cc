// SPDX-License-Identifier: Apache-2.0
#include "lib/base/clock.h"

#include <time.h>

namespace neurontrace {
namespace {

uint64_t ReadNs(clockid_t id) {
  timespec ts;
  clock_gettime(id, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts.tv_nsec);
}

}  // namespace

uint64_t SystemClock::RealtimeNs() const { return ReadNs(CLOCK_REALTIME); }
uint64_t SystemClock::MonotonicNs() const { return ReadNs(CLOCK_MONOTONIC); }
uint64_t SystemClock::BoottimeNs() const { return ReadNs(CLOCK_BOOTTIME); }

}  // namespace neurontrace
