// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace neurontrace {

// How long chunks waited for the acknowledgement that they are durable, as a histogram. A plain
// value. Filled by the uploader and exported by the agent's metrics.
struct AckTimes {
  // Upper bounds of the buckets, in seconds; one more bucket is for everything above.
  static constexpr std::array<double, 14> kSeconds = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                      0.2,   0.5,   1,     2,    5,    10,   30};

  std::array<uint64_t, kSeconds.size() + 1> counts = {};
  // Of all values, as a Prometheus histogram has it.
  double sum_seconds = 0;

  // Adds one wait in nanoseconds. A value equal to a bound belongs to its bucket.
  void Record(uint64_t ns) {
    const double seconds = static_cast<double>(ns) * 1e-9;
    const auto at = std::lower_bound(kSeconds.begin(), kSeconds.end(), seconds);
    ++counts[static_cast<size_t>(at - kSeconds.begin())];
    sum_seconds += seconds;
  }
};

}  // namespace neurontrace
