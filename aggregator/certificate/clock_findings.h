// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/certificate/certificate.h"

namespace neurontrace {

// The order of two events on two instances is certain if they are further apart than the sum of
// both bounds. A bound above this, in nanoseconds, gets a note.
inline constexpr uint64_t kOrderUnknownNs = 1'000'000;

// Fills in how well the clocks of each worker are known, and adds notes: violated orders, the worst
// bound, and the times in which a clock is known too badly to order events of two instances. A
// clock that is unknown for a part of an ended capture is a finding. A pure function, called after
// MakeCertificate.
void AddClockFindings(const CaptureClocks& clocks, Certificate& certificate);

// Returns a text with a unit that fits: "0.3 us", "31.2 us", "2.500 ms", "1.204 s", or "not known"
// for kNoBound. The value is rounded to the last digit shown, without reaching the next unit.
std::string DescribeClockBound(uint64_t ns);

}  // namespace neurontrace
