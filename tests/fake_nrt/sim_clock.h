// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace neurontrace {

// The wall clock of a simulated instance: true time with an honest error. What an agent on that
// instance reads has to have the same error.
struct HostClock {
  int64_t offset_ns = 0;
  double drift_ppm = 0;
  int64_t origin_ns = 0;   // true time from which the drift counts
  int64_t step_ns = 0;     // somebody sets the clock by so much …
  int64_t step_at_ns = 0;  // … at this true time

  int64_t Stamp(int64_t true_ns) const {
    return true_ns + offset_ns + (true_ns >= step_at_ns ? step_ns : 0) +
           static_cast<int64_t>(drift_ppm * 1e-6 * static_cast<double>(true_ns - origin_ns));
  }
};

// The free-running counter of one physical core, in its own nanoseconds from its own start.
struct DeviceClock {
  int64_t base_ns = 0;  // at the origin
  double drift_ppm = 0;
  int64_t origin_ns = 0;

  int64_t Read(int64_t true_ns) const {
    const int64_t since = true_ns - origin_ns;
    return base_ns + since + static_cast<int64_t>(drift_ppm * 1e-6 * static_cast<double>(since));
  }
};

}  // namespace neurontrace
