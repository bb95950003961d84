// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/align/utc/reference_utc.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// All that `evidence`, which may reach far beyond `window`, says of the clocks of one machine in
// one boot; nullopt: the moment of its last snapshot. Without exchanges a model without segments,
// and REALTIME taken for the reference. `reference_utc`: what the reference's keeper knows of UTC.
// Pure.
InstanceClock FitInstanceClock(const std::string& instance_id, const std::string& boot_id,
                               const ClockEvidence& evidence,
                               const std::optional<ReferenceWindow>& window,
                               const ReferenceUtc& reference_utc = {});

// Has it say the bounds of another window.
void SetBoundsIn(const ReferenceWindow& window, InstanceClock& clock);

}  // namespace neurontrace
