// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// When a capture begins, or where a snapshot's cut is: one moment, or one execution number, for the
// whole fleet. The fields of neurontrace.v1.CaptureBegin. A plain value.
struct CaptureBegin {
  uint64_t reference_ns = 0;
  uint64_t host_raw_ns = 0;      // that moment on the told host's CLOCK_MONOTONIC_RAW; 0: at once
  uint64_t bound_ns = 0;         // how far host_raw_ns can be from it
  uint64_t first_execution = 0;  // of each core; 0: by time
  uint64_t last_execution = 0;   // that is recorded; 0: until told to stop
  friend bool operator==(const CaptureBegin&, const CaptureBegin&) = default;
};

}  // namespace neurontrace
