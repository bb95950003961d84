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

// What the ClockBound daemon (github.com/aws/clock-bound) promises of CLOCK_REALTIME, from its
// shared memory of version 2. Any thread.
struct ClockBoundPromise {
  uint64_t as_of_ns = 0;  // CLOCK_MONOTONIC_COARSE
  uint64_t void_after_ns = 0;
  uint64_t bound_ns = 0;
  uint32_t max_drift_ppb = 0;
  bool synchronized = false;
  // The vmclock's when the promise was made; nullopt where the daemon does not look at it.
  std::optional<uint64_t> disruption_marker;
};

class ClockBoundMemory {
 public:
  static constexpr char kPath[] = "/var/run/clockbound/shm0";
  // NOT_FOUND where there is none; INVALID_ARGUMENT for what is no such memory, or another version;
  // UNAVAILABLE while it is being written.
  static absl::StatusOr<ClockBoundPromise> Read(FileSystem& files, const std::string& path);

  // What it says of UTC at `now`; nullopt where it promises nothing: not synchronized, expired, or
  // of before the disruption that `disruption_marker` (of the vmclock, where there is one) stands
  // for.
  static std::optional<UtcReading> Utc(const ClockBoundPromise& promise, const ClockSnapshot& now,
                                       std::optional<uint64_t> disruption_marker);
};

}  // namespace neurontrace
