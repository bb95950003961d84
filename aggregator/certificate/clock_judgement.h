// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/certificate/certificate.h"

namespace neurontrace {

// Of two events on two instances the order is knowable where they are further apart than both
// bounds. Where one bound alone is beyond this, that is said.
inline constexpr uint64_t kOrderUnknownNs = 1'000'000;

// Fills in how well the clocks of each worker are known, and adds notes: the worst bound, and the
// times in which a clock is known so badly that the order of events on two instances is not. Pure.
void JudgeClocks(const CaptureClocks& clocks, Certificate& certificate);

// "0.3 us", "31.2 us", "2.500 ms", "1.204 s", "not known".
std::string DescribeClockBound(uint64_t ns);

}  // namespace neurontrace
