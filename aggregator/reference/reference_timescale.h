// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/clock/host_clocks.h"

namespace neurontrace {

// The timescale of an aggregator: its host's CLOCK_MONOTONIC_RAW plus an offset that was chosen
// once, so that it looked like time since the Unix epoch at that moment. It is never steered, and
// its relation to UTC is determined from evidence. Any thread. `clocks` must outlive it. The models
// of all hosts' clocks are relative to it.
class ReferenceTimescale {
 public:
  ReferenceTimescale(const HostClocks& clocks, uint32_t epoch, uint64_t offset_ns)
      : clocks_(clocks), epoch_(epoch), offset_ns_(offset_ns) {}

  uint64_t NowNs() const { return FromRaw(clocks_.RawNs()); }
  uint64_t FromRaw(uint64_t raw_ns) const { return raw_ns + offset_ns_; }
  // Names the timescale: the same number means the same offset and the same boot of the host.
  uint32_t epoch() const { return epoch_; }

 private:
  const HostClocks& clocks_;
  // Counted from 1 by the store; offset_ns_ is constant within an epoch.
  const uint32_t epoch_;
  const uint64_t offset_ns_;
};

// Identifies what this host's raw clock counts from: the boot, and the offset that a process in a
// time namespace sees (time_namespaces(7)). Empty if the kernel does not tell. An epoch continues
// after a restart only while this is unchanged.
std::string RawOrigin();

}  // namespace neurontrace
