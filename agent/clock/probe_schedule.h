// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/trace/clock_limits.h"

namespace neurontrace {

// Decides when to probe, in beats of 50 ms. Regularly 4 probes twice a second: the exchange with
// the smallest round trip bounds the offset best (Mills, RFC 5905, clock filter), so a few are
// worth more than their mean. After a start, and whenever the clocks may have changed, 64 probes in
// half a second, so that a timeline is good from its beginning. A plain value.
class ProbeSchedule {
 public:
  // Regularly, kProbesPerBurst probes are sent in one of this many beats.
  static constexpr int kTicksPerBurst = 10;
  static constexpr int kProbesPerBurst = 4;
  static constexpr int kProbesAtOnce = 7;  // in a beat of a rush
  static constexpr int kFastProbes = 64;
  static constexpr int kTicksPerSecond = 20;
  static_assert(2 * kProbesPerBurst * kTicksPerSecond / kTicksPerBurst <=
                        int{limits::kProbesPerSecondMax} &&
                    4 * kFastProbes <= int{limits::kProbesAtOnceMax},
                "far below what an aggregator answers");

  // `phase` is any number, different for each agent, so that the agents of a fleet do not ask in
  // step.
  explicit ProbeSchedule(uint64_t phase)
      : ticks_to_burst_(1 + static_cast<int>(phase % kTicksPerBurst)) {}

  // Starts a rush; one that is under way starts again.
  void StartFastProbing() { fast_probes_ = kFastProbes; }
  // Returns how many probes to send in this beat.
  int OnTick() {
    const bool burst = --ticks_to_burst_ <= 0;
    if (burst) ticks_to_burst_ = kTicksPerBurst;
    if (fast_probes_ > 0) {
      const int probes = fast_probes_ < kProbesAtOnce ? fast_probes_ : kProbesAtOnce;
      fast_probes_ -= probes;
      return probes;
    }
    return burst ? kProbesPerBurst : 0;
  }

 private:
  // Beats until the next regular burst, which is skipped during a rush.
  int ticks_to_burst_;
  // Probes of the current rush that are still to be sent.
  int fast_probes_ = 0;
};

}  // namespace neurontrace
