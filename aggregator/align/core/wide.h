// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// Holds every sum and difference of nanoseconds, and their products with a rate. The arithmetic of
// the clock fits: 64-bit nanoseconds, computed in 128 bits so that nothing wraps.
using Wide = __int128;

// Evidence with a time from here on is ignored: 146 years, far from where sums overflow.
inline constexpr uint64_t kEvidenceTimeMaxNs = uint64_t{1} << 62;

// Converts to nanoseconds; a value outside the range becomes the nearest one. Broken evidence then
// gives a saturated time instead of one that wrapped.
inline uint64_t Saturate(Wide value) {
  if (value < 0) return 0;
  if (value > Wide{UINT64_MAX}) return UINT64_MAX;
  return static_cast<uint64_t>(value);
}

}  // namespace neurontrace
