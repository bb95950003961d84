// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "aggregator/export/rows/lanes.h"

// The order of a trace's tracks among those of one parent (sibling_order_rank): in a process its
// clock, memories and counters, then workers and cores in the order of their ranks; in a worker or
// a core the rows of the runtime, those of the hardware, and what was derived. What stands directly
// below a process Perfetto sorts by name all the same, so that names there are chosen to be in
// this order, too.
namespace neurontrace::track_rank {

inline constexpr int32_t kClock = 1;
inline constexpr int32_t kMemory = 2;
inline constexpr int32_t kCounter = 3;
// Workers, cores and threads that contain rows: from here on, by the place of their stream.
inline constexpr int32_t kGroup = 16;

inline constexpr int32_t kLanes = static_cast<int32_t>(Lanes::kLanesMax);
// Ranges of ranks: each row takes one rank for each of its possible lanes, so that lanes follow
// their row. The static_asserts below prove that the ranges do not overlap.
inline constexpr int32_t kRuntimeRow = 100'000'000;
inline constexpr int32_t kHardwareRow = 200'000'000;
inline constexpr int32_t kSteps = 1'000'000'000;
// Counters of the two directions.
inline constexpr int32_t kTransfers = kSteps + kLanes;
inline constexpr int32_t kLosses = kTransfers + 2;
inline constexpr int32_t kVerdicts = kLosses + 1;

// Rows beyond these share the last rank of their kind.
inline constexpr int32_t kRowsRanked = 65'536;
inline constexpr int32_t kCoresRanked = 1'024;
inline constexpr int32_t kRowsOfCoreRanked = 256;

// Returns the rank of the runtime's row with this number; the ranks of its lanes follow.
constexpr int32_t ForRuntimeRow(uint64_t number) {
  return kRuntimeRow + static_cast<int32_t>(std::min<uint64_t>(number, kRowsRanked - 1)) * kLanes;
}
// Returns the rank of a row of the hardware, by physical core (UINT64_MAX: not known).
constexpr int32_t ForHardwareRow(uint64_t core, uint64_t number) {
  const auto place = std::min<uint64_t>(core, kCoresRanked - 1) * kRowsOfCoreRanked +
                     std::min<uint64_t>(number, kRowsOfCoreRanked - 1);
  return kHardwareRow + static_cast<int32_t>(place) * kLanes;
}
static_assert(ForRuntimeRow(UINT64_MAX) + kLanes <= kHardwareRow);
static_assert(ForHardwareRow(UINT64_MAX, UINT64_MAX) + kLanes <= kSteps);
// Returns the rank of a stream's group, by the stream's place in the order of display.
constexpr int32_t ForGroup(uint64_t place) {
  return kGroup + static_cast<int32_t>(std::min<uint64_t>(place, kRuntimeRow - kGroup - 1));
}

}  // namespace neurontrace::track_rank
