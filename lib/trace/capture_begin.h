// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// When a capture begins, or where a snapshot's cut is: one moment, or one execution number, for the
// whole fleet. The fields of neurontrace.v1.CaptureBegin. Made by the aggregator when a capture is
// armed (decision 0016). A plain value.
struct CaptureBegin {
  // The moment on the aggregator's reference timescale.
  uint64_t reference_ns = 0;
  uint64_t host_raw_ns =
      0;  // the same moment on CLOCK_MONOTONIC_RAW of the receiving host; 0: at once
  uint64_t bound_ns = 0;         // how far host_raw_ns can be from reference_ns
  uint64_t first_execution = 0;  // of each core; 0: by time
  uint64_t last_execution = 0;   // the last one that is recorded; 0: until told to stop
  friend bool operator==(const CaptureBegin&, const CaptureBegin&) = default;
};

}  // namespace neurontrace
