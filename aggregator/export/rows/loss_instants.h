// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/chunk_source.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// Returns the losses of a stream as they are shown: those known one by one, each at its time, then
// the remainder of the sums. Every lost event is in exactly one. Times are raw, as in the stream's
// description. A pure function.
std::vector<Loss> LossInstants(const StreamDescription& stream);

// A loss, or a suspension as it is shown among losses, and its place in a trace.
struct LossInstant {
  uint64_t at_ns = 0;  // reference time
  uint32_t stream = 0;
  Loss loss;
  bool is_suspension = false;

  // Returns the name that every format gives it.
  std::string_view name() const { return is_suspension ? "not recorded" : "events lost"; }
};
// Returns the losses and suspensions of all streams in the filter's window, by time: the common
// rule of all formats that show losses at their times. A loss without a time, in a stream without
// any event, may belong to every window; it is shown at the begin of the trace or of the window. A
// pure function.
std::vector<LossInstant> TraceLosses(const TimelineHeader& header);

}  // namespace neurontrace
