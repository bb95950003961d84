// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Whom to believe of those who promise to know UTC, first to last: a clock in hardware with an
// error bound of its own; a daemon that makes a bound its business; one whose estimate has to be
// made a bound. Who contradicts one before him is not believed. All of them come after what probes
// prove: that is measured, and a promise cannot be checked.
inline constexpr std::array kUtcSourcesByTrust = {UtcSource::kPhc, UtcSource::kClockBound,
                                                  UtcSource::kChrony};

// "phc", "clockbound", "chrony"; "utc" for what is none of them.
std::string_view NameOf(UtcSource source);

// A reading that can be one: its source is known, its times are in order, and it says something.
bool IsSound(const UtcReading& reading);

}  // namespace neurontrace
