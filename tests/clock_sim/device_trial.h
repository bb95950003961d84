// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/clock_sim/device_method.h"
#include "tests/clock_sim/host_score.h"
#include "tests/clock_sim/log_histogram.h"

namespace neurontrace {

// How well a method did on a core, over runs. Nanoseconds of the host's clock.
struct DeviceScore {
  LogHistogram error;
  LogHistogram bound;
  LogHistogram likely_bound;
  Share covered;
  Share likely_covered;
  Share brackets;  // executions that start after their submission and end before their completion
  Share ascends;   // stamps that do not come before the one before them
  uint64_t sync_points = 0;
  uint64_t fit_ns = 0;

  void Merge(const DeviceScore& other);
};

// One run. One score a method, in the order of `methods`.
std::vector<DeviceScore> RunDeviceTrial(const DeviceScenario& scenario,
                                        std::span<const DeviceMethod> methods, uint64_t seed);

}  // namespace neurontrace
