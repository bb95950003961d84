// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/utc/reference_utc.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Derives the clocks of one machine in one boot from `evidence`, which may reach far beyond
// `window`. `window` selects where bounds are reported; nullopt is the moment of the last snapshot.
// `reference_utc` is what the reference's keeper knows of UTC. Without exchanges or snapshots the
// model has no segment, and REALTIME is taken for the reference time. Pure. Called by the cache of
// fitted clocks (aggregator/clocks/clock_model_cache.h), with stored evidence.
InstanceClock FitInstanceClock(const std::string& instance_id, const std::string& boot_id,
                               const ClockEvidence& evidence,
                               const std::optional<ReferenceWindow>& window,
                               const ReferenceUtc& reference_utc = {});

// Replaces the reported bounds by those within another window. Does nothing for a clock without a
// model. A bound of kNoBound means that part of the window has none.
void SetBoundsIn(const ReferenceWindow& window, InstanceClock& clock);

}  // namespace neurontrace
