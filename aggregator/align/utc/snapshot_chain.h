// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_lines.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// The steps of REALTIME that a host told of, for questions about one stretch of raw after another:
// each takes the logarithm of their number, however long and entangled they are.
class ReportedClockSteps {
 public:
  using Ends = std::pair<const ClockEvent*, const ClockEvent*>;

  // `events` outlive it, and are in ascending order of raw.
  explicit ReportedClockSteps(std::span<const ClockEvent> events);

  // The first and the last, in their order, that begin before `end_ns` and end after `begin_ns`.
  std::optional<Ends> Between(uint64_t begin_ns, uint64_t end_ns) const;

 private:
  std::vector<const ClockEvent*> steps_;
  // A tree over their ends: the latest of all below a node; node n is above 2n and 2n + 1, and the
  // last leaves_ nodes are the steps.
  size_t leaves_ = 1;
  std::vector<uint64_t> latest_;
};

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
