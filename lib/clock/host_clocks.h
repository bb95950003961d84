// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// All clocks of this machine, where lib/base/clock.h has the two that most code needs. Abstract so
// tests step, slew and stop them. All methods may be called from any thread.
class HostClocks {
 public:
  virtual ~HostClocks() = default;
  // CLOCK_MONOTONIC_RAW, in ns.
  virtual uint64_t RawNs() const = 0;
  // REALTIME, MONOTONIC and BOOTTIME between two readings of raw; nothing of adjtimex.
  virtual ClockSnapshot ReadOnce() const = 0;
  // How the kernel steers REALTIME and MONOTONIC: the fields of adjtimex(2). They stay as they are
  // where the kernel does not say.
  virtual void ReadSteering(ClockSnapshot& snapshot) const = 0;
};

class SystemHostClocks final : public HostClocks {
 public:
  uint64_t RawNs() const override;
  ClockSnapshot ReadOnce() const override;
  void ReadSteering(ClockSnapshot& snapshot) const override;
};

// A snapshot with its steering. Of up to four brackets the first that is narrower than 1 us, or, on
// a machine where the clocks take system calls, the narrowest: it says how wide it is.
ClockSnapshot ReadHostClocks(const HostClocks& clocks);

// REALTIME minus raw in the middle of the snapshot's bracket, modulo 2^64.
constexpr int64_t RealtimeMinusRaw(const ClockSnapshot& snapshot) {
  const uint64_t middle = snapshot.raw_begin_ns + (snapshot.raw_end_ns - snapshot.raw_begin_ns) / 2;
  return static_cast<int64_t>(snapshot.realtime_ns - middle);
}

// How much faster than raw the kernel lets REALTIME run by its frequency and tick, in parts of one;
// what it slews besides (adjtime(3), the kernel's PLL) is at most kUnseenSlew more or less.
double SteeringRate(const ClockSnapshot& snapshot);
inline constexpr double kUnseenSlew = 550e-6;

}  // namespace neurontrace
