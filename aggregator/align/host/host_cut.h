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

// Where a host's curve is cut: somewhere between two times of raw something happened.
struct HostCut {
  uint64_t x_begin_ns = 0;
  uint64_t x_end_ns = 0;
  SegmentCause cause = SegmentCause::kBegin;  // of the segment that begins
  int64_t amount_ns = 0;                      // 0: not known
  std::string words;
};

// What the host and the keeper of the reference told, in ascending order and apart from each other.
// The sides are in ascending order of x.
std::vector<HostCut> ToldCuts(std::span<const ClockEvent> events, std::span<const HostSide> sides,
                              const std::vector<HostExchange>& exchanges);
// Sorts them, and makes one of those that overlap.
std::vector<HostCut> MergeCuts(std::vector<HostCut> cuts);

// The sides between the cuts: one more stretch than there are cuts. Those within a cut are in none.
std::vector<std::span<const HostSide>> StretchesBetween(std::span<const HostSide> sides,
                                                        std::span<const HostCut> cuts);

}  // namespace neurontrace
