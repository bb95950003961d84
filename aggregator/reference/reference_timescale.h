// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "lib/clock/host_clocks.h"

namespace neurontrace {

// The timescale of an aggregator: its host's CLOCK_MONOTONIC_RAW and an offset that was chosen
// once, so that it looked like time since the Unix epoch then. It is never steered; what it is to
// UTC is for others to find out. Any thread.
class ReferenceTimescale {
 public:
  ReferenceTimescale(const HostClocks& clocks, uint32_t epoch, uint64_t offset_ns)
      : clocks_(clocks), epoch_(epoch), offset_ns_(offset_ns) {}

  uint64_t NowNs() const { return FromRaw(clocks_.RawNs()); }
  uint64_t FromRaw(uint64_t raw_ns) const { return raw_ns + offset_ns_; }
  // Names it: the same number, the same offset and the same boot of the host.
  uint32_t epoch() const { return epoch_; }

 private:
  const HostClocks& clocks_;
  const uint32_t epoch_;
  const uint64_t offset_ns_;
};

// Names what this host's raw counts from: the boot, and where this process lives in a time
// namespace (time_namespaces(7)) the shift that it sees. Empty where the kernel does not say.
std::string RawOrigin();

}  // namespace neurontrace
