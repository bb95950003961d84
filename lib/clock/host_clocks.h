// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// All clocks of this machine, including the two of lib/base/clock.h that most code needs. Abstract
// so that tests step, slew and stop them. All methods may be called from any thread.
// docs/operator/clocks.md explains how hosts are compared.
class HostClocks {
 public:
  virtual ~HostClocks() = default;
  // Returns CLOCK_MONOTONIC_RAW in ns: no daemon steers or steps it, so that its rate is the
  // oscillator's.
  virtual uint64_t RawNs() const = 0;
  // Reads REALTIME, MONOTONIC and BOOTTIME between two readings of raw. Leaves the fields of
  // adjtimex zero.
  virtual ClockSnapshot ReadOnce() const = 0;
  // Adds how the kernel steers REALTIME and MONOTONIC: the fields of adjtimex(2). They stay
  // unchanged if the kernel does not allow reading them.
  virtual void ReadSteering(ClockSnapshot& snapshot) const = 0;
};

// The kernel's clocks. Stateless.
class SystemHostClocks final : public HostClocks {
 public:
  uint64_t RawNs() const override;
  ClockSnapshot ReadOnce() const override;
  void ReadSteering(ClockSnapshot& snapshot) const override;
};

// Returns a snapshot with its steering. Of up to four brackets it is the first that is narrower
// than 1 us or, on a machine whose clocks take system calls, the narrowest. The snapshot contains
// its width.
ClockSnapshot ReadHostClocks(const HostClocks& clocks);

// Returns REALTIME minus raw in the middle of the snapshot's bracket, in ns modulo 2^64.
constexpr int64_t RealtimeMinusRaw(const ClockSnapshot& snapshot) {
  const uint64_t middle = snapshot.raw_begin_ns + (snapshot.raw_end_ns - snapshot.raw_begin_ns) / 2;
  return static_cast<int64_t>(snapshot.realtime_ns - middle);
}

// Returns how much faster than raw the kernel lets REALTIME run by its frequency and tick, as a
// fraction (1e-6: 1 ppm), or 0 if that is not known. Slewing beyond these (adjtime(3), the kernel's
// PLL) adds at most kUnseenSlew in either direction; adjtime(3) alone slews by 500 ppm.
double SteeringRate(const ClockSnapshot& snapshot);
inline constexpr double kUnseenSlew = 550e-6;

}  // namespace neurontrace
