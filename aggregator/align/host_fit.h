// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/clock_model.h"
#include "aggregator/align/pair_fit.h"
#include "trace/clock_evidence.h"

namespace neurontrace {

struct HostFitParameters {
  PairFitParameters pair;
  // By how much the least delay of each direction may be smaller than half of the least round trip
  // that was seen, for the likely bound to hold.
  double floor_margin_ns = 2'000;
};

// The model of a host's raw clock (x) by the reference (y), from all that is known of it.
//
// An exchange is two inequalities, each true at its own instant however long the packets were under
// way; the possible strip is made of nothing else. The likely strip supposes besides that the least
// delay was the same in both directions when the path was first seen.
ClockModel FitHostClock(const ClockEvidence& evidence, const HostFitParameters& parameters);

}  // namespace neurontrace
