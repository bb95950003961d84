// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace neurontrace::limits {

// Aggregator: instances whose clock's bound is a series of its own; beyond, those that are known
// best are left out and counted in neurontrace_aggregator_clock_bounds_left_out.
inline constexpr size_t kClockBoundSeriesMax = 2'048;

}  // namespace neurontrace::limits
