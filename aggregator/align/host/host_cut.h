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

// A cut of a host's curve: something happened between two times of raw. A plain value.
struct HostCut {
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  SegmentCause cause = SegmentCause::kBegin;  // of the segment that begins
  int64_t amount_ns = 0;                      // of the step; 0: unknown
  std::string words;
};

// Returns the cuts reported by the host and by restarts of the reference, in ascending order and
// not overlapping. The sides are in ascending order of x.
std::vector<HostCut> ToldCuts(std::span<const ClockEvent> events, std::span<const HostSide> sides,
                              const std::vector<HostExchange>& exchanges);
// Sorts cuts and merges overlapping ones.
std::vector<HostCut> MergeCuts(std::vector<HostCut> cuts);

// Returns the sides between the cuts: one more stretch than there are cuts. Sides within a cut
// belong to none. The result refers to `sides`.
std::vector<std::span<const HostSide>> StretchesBetween(std::span<const HostSide> sides,
                                                        std::span<const HostCut> cuts);

}  // namespace neurontrace
