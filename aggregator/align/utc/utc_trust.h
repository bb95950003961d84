// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// The sources of UTC by descending trust: a hardware clock with its own error bound, a daemon whose
// purpose is a bound, and one whose estimate has to be turned into a bound. A source that
// contradicts an earlier one is not believed. All of them come after what probes prove: that is
// measured, and a promise cannot be checked.
inline constexpr std::array kUtcSourcesByTrust = {UtcSource::kPhc, UtcSource::kClockBound,
                                                  UtcSource::kChrony};

// Returns "phc", "clockbound" or "chrony"; "utc" for any other. Pure.
std::string_view NameOf(UtcSource source);

// Returns whether a reading is usable: its source is known, its times are in order, and its width
// is small enough to be informative. Both users of readings, the host's and the reference's, skip
// all others. Pure.
bool IsSound(const UtcReading& reading);

}  // namespace neurontrace
