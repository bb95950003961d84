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

// The steps of REALTIME that a host reported, for queries about one stretch of raw after another.
// Each query takes logarithmic time, however long and entangled the steps are: a hostile host may
// report many. The pointers of its results are into the events that the constructor received.
class ReportedClockSteps {
 public:
  using Ends = std::pair<const ClockEvent*, const ClockEvent*>;

  // `events` must outlive this and be in ascending order of raw.
  explicit ReportedClockSteps(std::span<const ClockEvent> events);

  // Returns the first and the last step that begin before `end_ns` and end after `begin_ns`.
  // Returns nullopt if there is none; the two are the same if there is one.
  std::optional<Ends> Between(uint64_t begin_ns, uint64_t end_ns) const;

 private:
  std::vector<const ClockEvent*> steps_;
  // A binary tree over the ends of the steps. Each node has the latest end below it. Node n is the
  // parent of 2n and 2n + 1, and the last leaves_ nodes are the steps. latest_[0] is unused.
  size_t leaves_ = 1;
  std::vector<uint64_t> latest_;
};

// REALTIME by raw while nobody set it. Two chains overlap for as long as the step between them may
// have taken place. A chain has at least one snapshot.
struct SnapshotChain {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  std::vector<ClockLine> lines;  // x: raw, y: REALTIME; bound: of REALTIME
};

// Returns the chains between steps of REALTIME: reported steps, and those that show because no slew
// is as fast (100,000 ppm). Ignores impossible snapshots. Pure. Chains are in order of raw, each
// reaching up to an hour beyond its own snapshots.
std::vector<SnapshotChain> ChainsOf(std::span<const ClockSnapshot> snapshots,
                                    std::span<const ClockEvent> events);

}  // namespace neurontrace
