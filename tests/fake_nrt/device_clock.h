// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The free-running counter of one physical core, in its own nanoseconds from its own start.
struct SimDeviceClock {
  int64_t base_ns = 0;  // at the origin
  double drift_ppm = 0;
  int64_t origin_ns = 0;

  int64_t Read(int64_t true_ns) const {
    const int64_t since = true_ns - origin_ns;
    return base_ns + since + static_cast<int64_t>(drift_ppm * 1e-6 * static_cast<double>(since));
  }
};

}  // namespace neurontrace
