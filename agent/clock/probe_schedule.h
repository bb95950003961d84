// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "trace/clock_limits.h"

namespace neurontrace {

// When to probe: small bursts, as the fastest of a few is worth more than their mean, twice a
// second; and at the beginning, and whenever the clocks may have changed, 64 probes in half a
// second, so that a timeline is good from its start. In beats of 50 ms; a plain value.
class ProbeSchedule {
 public:
  static constexpr int kBeatsPerBurst = 10;
  static constexpr int kProbesPerBurst = 4;
  static constexpr int kProbesAtOnce = 7;  // in a beat of a rush
  static constexpr int kProbesPerRush = 64;
  static constexpr int kBeatsPerSecond = 20;
  static_assert(2 * kProbesPerBurst * kBeatsPerSecond / kBeatsPerBurst <=
                        int{limits::kProbesPerSecondMax} &&
                    4 * kProbesPerRush <= int{limits::kProbesAtOnceMax},
                "far below what an aggregator answers");

  // `phase`: anything; of many agents, so that they do not all ask at once.
  explicit ProbeSchedule(uint64_t phase)
      : beats_to_burst_(1 + static_cast<int>(phase % kBeatsPerBurst)) {}

  void Rush() { rush_ = kProbesPerRush; }
  // How many probes to send in this beat.
  int Beat() {
    const bool burst = --beats_to_burst_ <= 0;
    if (burst) beats_to_burst_ = kBeatsPerBurst;
    if (rush_ > 0) {
      const int probes = rush_ < kProbesAtOnce ? rush_ : kProbesAtOnce;
      rush_ -= probes;
      return probes;
    }
    return burst ? kProbesPerBurst : 0;
  }

 private:
  int beats_to_burst_;
  int rush_ = 0;
};

}  // namespace neurontrace
