// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/base/file_system.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// An error bound of CLOCK_REALTIME that the ClockBound daemon (github.com/aws/clock-bound)
// promises, read from its shared memory segment of version 2. A plain value.
struct ClockBoundPromise {
  // When the promise was made, by CLOCK_MONOTONIC_COARSE.
  uint64_t as_of_ns = 0;
  // When the promise expires, by the same clock.
  uint64_t void_after_ns = 0;
  // The largest distance of CLOCK_REALTIME from UTC at `as_of_ns`.
  uint64_t bound_ns = 0;
  // How fast that distance may grow afterwards, in ns per second.
  uint32_t max_drift_ppb = 0;
  // The promise holds only while the daemon considers the clock synchronised.
  bool synchronized = false;
  // The vmclock's when the promise was made; nullopt where the daemon does not look at it.
  std::optional<uint64_t> disruption_marker;
};

// Reads the shared memory of the ClockBound daemon as a file, without its client library. Any
// thread.
class ClockBoundMemory {
 public:
  static constexpr char kPath[] = "/var/run/clockbound/shm0";
  // Fails with NOT_FOUND if there is no segment, with INVALID_ARGUMENT for a file that is none or
  // of another version, and with UNAVAILABLE while the daemon is writing it.
  static absl::StatusOr<ClockBoundPromise> Read(FileSystem& files, const std::string& path);

  // Returns the interval that contains UTC at `now`: the promised bound, plus the promised drift
  // since it was made. Returns nothing if the promise does not hold: not synchronised, expired, or
  // made before the disruption that `disruption_marker` (the vmclock's, where there is one)
  // reports.
  static std::optional<UtcReading> Utc(const ClockBoundPromise& promise, const ClockSnapshot& now,
                                       std::optional<uint64_t> disruption_marker);
};

}  // namespace neurontrace
