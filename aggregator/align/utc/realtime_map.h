// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_lines.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Returns the UnionOf the first two lists, of that and the third, and so on. If lists overlap so
// much that this would take quadratic time, the rest is united by halves first. Bounds hold then,
// too, and only rounding differs. Each list must be ascending in x. Pure, as all functions here.
std::vector<ClockLine> UnionOfAll(std::vector<std::vector<ClockLine>> lists);

// A host's REALTIME by the reference while nobody set it, between two times of raw. A timestamp of
// REALTIME is unambiguous within one stretch.
struct RealtimeInterval {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  std::vector<ClockLine> lines;  // x: REALTIME, y: reference
};

// Returns the stretches of a machine's REALTIME in ascending order of raw, which the snapshots and
// events must have. Timestamps of REALTIME are converted to raw through the snapshots, and to the
// reference through the model of raw. After REALTIME was set back the same timestamp occurs twice,
// and a caller that knows on which side a timestamp lies uses the stretches.
//
// Bounds are those of the model and of the snapshots: how long a reading took, and how far the
// kernel can have slewed between two without it being seen.
std::vector<RealtimeInterval> RealtimeIntervalsOf(const ClockModel& model,
                                                  std::span<const ClockSnapshot> snapshots,
                                                  std::span<const ClockEvent> events);

// Returns the map for callers that do not know on which side a timestamp lies: bounds include both
// sides of timestamps that occur twice. Timestamps from more than an hour before the evidence are
// used unchanged, without a bound. Without snapshots or a model it is the identity with an unknown
// bound. `model`, `snapshots` and `events` are of one machine in one boot.
ClockMap RealtimeMapOf(const ClockModel& model, std::span<const ClockSnapshot> snapshots,
                       std::span<const ClockEvent> events);

}  // namespace neurontrace
