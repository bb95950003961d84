// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/clock_lines.h"
#include "trace/clock_evidence.h"

namespace neurontrace {

// REALTIME by raw while nobody set it. Two chains overlap for as long as a step between them may
// have been.
struct SnapshotChain {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  std::vector<ClockLine> lines;  // x: raw, y: REALTIME; bound: of REALTIME
};

// The chains between the steps of REALTIME: those that the host told, and those that show because
// no slew is as fast (100,000 ppm). Snapshots that make no sense are passed over.
std::vector<SnapshotChain> ChainsOf(std::span<const ClockSnapshot> snapshots,
                                    std::span<const ClockEvent> events);

}  // namespace neurontrace
