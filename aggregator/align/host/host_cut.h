// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/align/host/host_exchange.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A cut of a host's curve: something happened between two times of raw. A plain value. The model of
// a host cannot be smooth across a cut, so each stretch between two is fitted by itself
// (host_fit.h).
struct HostCut {
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  SegmentCause cause = SegmentCause::kBegin;  // of the segment that begins
  int64_t amount_ns = 0;                      // of the step; 0: unknown
  std::string words;
};

// Returns the cuts reported by the host and by restarts of the reference, in ascending order and
// not overlapping. The sides are in ascending order of x. `sides` refer to `exchanges` by index.
// Events with times that cannot be are ignored.
std::vector<HostCut> ReportedCuts(std::span<const ClockEvent> events,
                                  std::span<const HostSide> sides,
                                  const std::vector<HostExchange>& exchanges);
// Sorts cuts and merges overlapping ones. A merged cut has the cause of its first part, the text of
// all, and no amount unless it has one part.
std::vector<HostCut> MergeCuts(std::vector<HostCut> cuts);

// Returns the sides between the cuts: one more stretch than there are cuts. Sides within a cut
// belong to none. The result refers to `sides`. `cuts` must be as MergeCuts returns them. A side
// exactly at the begin or end of a cut belongs to the stretch next to it.
std::vector<std::span<const HostSide>> SplitAtSteps(std::span<const HostSide> sides,
                                                    std::span<const HostCut> cuts);

}  // namespace neurontrace
