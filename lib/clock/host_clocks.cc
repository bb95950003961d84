// SPDX-License-Identifier: Apache-2.0
#include "lib/clock/host_clocks.h"

#include <sys/timex.h>
#include <time.h>

namespace neurontrace {
namespace {

// Five readings through the vDSO take well below 1 us, so that a narrower bracket was not
// interrupted.
constexpr uint64_t kBracketGoodNs = 1'000;
constexpr int kTriesMax = 4;
constexpr double kTickUsPerSecond = 10'000;  // timex.tick of a clock that is not steered

// Returns a clock's value in ns. It cannot fail: all clocks exist since Linux 2.6.39.
uint64_t ReadNs(clockid_t id) {
  timespec ts;
  clock_gettime(id, &ts);
  return static_cast<uint64_t>(ts.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(ts.tv_nsec);
}

}  // namespace

uint64_t SystemHostClocks::RawNs() const { return ReadNs(CLOCK_MONOTONIC_RAW); }

ClockSnapshot SystemHostClocks::ReadOnce() const {
  ClockSnapshot snapshot;
  // The order bounds the error: each clock was read somewhere between the two readings of raw.
  snapshot.raw_begin_ns = ReadNs(CLOCK_MONOTONIC_RAW);
  snapshot.realtime_ns = ReadNs(CLOCK_REALTIME);
  snapshot.monotonic_ns = ReadNs(CLOCK_MONOTONIC);
  snapshot.boottime_ns = ReadNs(CLOCK_BOOTTIME);
  snapshot.raw_end_ns = ReadNs(CLOCK_MONOTONIC_RAW);
  return snapshot;
}

void SystemHostClocks::ReadSteering(ClockSnapshot& snapshot) const {
  // With modes 0 adjtimex only reads, and needs no privilege. Containers may still forbid it: the
  // fields stay zero then.
  timex state{};
  if (adjtimex(&state) < 0) return;
  snapshot.frequency = state.freq;
  snapshot.tick_us = static_cast<uint32_t>(state.tick);
  snapshot.status = static_cast<uint32_t>(state.status);
  snapshot.tai_offset_s = state.tai;
}

ClockSnapshot ReadHostClocks(const HostClocks& clocks) {
  ClockSnapshot best = clocks.ReadOnce();
  for (int tries = 1; tries < kTriesMax; ++tries) {
    if (best.raw_end_ns - best.raw_begin_ns < kBracketGoodNs) break;
    // A wide bracket comes from an interrupt or a preemption between the readings, which rarely
    // happens twice.
    const ClockSnapshot again = clocks.ReadOnce();
    if (again.raw_end_ns - again.raw_begin_ns < best.raw_end_ns - best.raw_begin_ns) best = again;
  }
  clocks.ReadSteering(best);
  return best;
}

double SteeringRate(const ClockSnapshot& snapshot) {
  if (snapshot.tick_us == 0) return 0;
  // timex.freq is in parts per million with 16 fractional bits (adjtimex(2)).
  const double frequency = static_cast<double>(snapshot.frequency) / 65'536e6;
  return (static_cast<double>(snapshot.tick_us) - kTickUsPerSecond) / kTickUsPerSecond + frequency;
}

}  // namespace neurontrace
