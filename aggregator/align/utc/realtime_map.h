// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_lines.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// UnionOf the first two lists, of that and the third, and so on. Where lists overlap so much that
// this would take the square of their number, what is left is united by halves first: bounds hold
// for all as well, and only rounding is another.
std::vector<ClockLine> UnionOfAll(std::vector<std::vector<ClockLine>> lists);

// A host's REALTIME by the reference while nobody set it: from a time of raw to another.
struct RealtimeStretch {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  std::vector<ClockLine> lines;  // x: REALTIME, y: reference
};

// Stamps of REALTIME go to raw through the snapshots, and to the reference through the model of
// raw. Where it was set back the same stamp comes twice: who knows on which side of that a stamp
// lies has the stretch. Bounds are those of the model and of the snapshots: how long a reading
// took, and how far the kernel can have slewed between two unseen. In ascending order of raw, as
// the snapshots and events are.
std::vector<RealtimeStretch> RealtimeStretchesOf(const ClockModel& model,
                                                 std::span<const ClockSnapshot> snapshots,
                                                 std::span<const ClockEvent> events);

// For who does not know: of stamps that come twice the bound includes both. Stamps from more than
// an hour before the evidence are taken as they are, without a bound. Without snapshots or
// without a model: the identity, with an unknown bound.
ClockMap RealtimeMapOf(const ClockModel& model, std::span<const ClockSnapshot> snapshots,
                       std::span<const ClockEvent> events);

}  // namespace neurontrace
