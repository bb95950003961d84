// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/align/clock_map.h"
#include "aggregator/align/clock_model.h"
#include "trace/clock_evidence.h"

namespace neurontrace {

// The way from a host's CLOCK_REALTIME, which its events are stamped with, to the reference:
// through its snapshots to raw, and from there by the model of raw.
//
// Between two snapshots REALTIME runs evenly against raw where the kernel steered it alike at both;
// else it may bend between them, and the bound says by how much at most. Where somebody set it,
// times that it showed twice could be either, and are bounded by both; times that it never showed
// are where it was set. Before the first snapshot and after the last the bound grows for a while,
// and then is not known.
//
// INVALID_ARGUMENT: there is no snapshot, or no segment.
absl::StatusOr<ClockMap> MakeRealtimeMap(const std::vector<ClockSnapshot>& snapshots,
                                         const ClockModel& model);

}  // namespace neurontrace
