// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// The losses of a stream as they are shown: those that are known one by one, each at its time, then
// what the sums have beyond them. Every event lost is in exactly one. Pure.
std::vector<Loss> LossInstants(const StreamDescription& stream);

// A loss where it is in a trace.
struct LossInstant {
  uint64_t at_ns = 0;  // reference time
  uint32_t stream = 0;
  Loss loss;
};
// Those of all streams that the filter's window has, by time: the one rule of all formats that show
// losses at their times. One without a time of its own, in a stream without any event, can have
// been in every window: it stands where the trace begins, or its window.
std::vector<LossInstant> TraceLosses(const TimelineHeader& header);

}  // namespace neurontrace
