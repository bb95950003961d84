// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/clock_sim/dice.h"
#include "tests/clock_sim/reference_clock.h"
#include "tests/clock_sim/true_clock.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// A source of UTC on a host, and what it promises: to be off by no more than `bound_ns`. It keeps
// that, unless it lies.
struct UtcPlan {
  UtcSource source = UtcSource::kPhc;
  double bound_ns = 5'000;
  double lie_ns = 0;  // by which all it says is off besides
  int64_t interval_ns = 5 * kSecond;
};

// UTC as the sources of hosts know it: a smooth clock that nobody here keeps. Equal seeds give
// equal ones.
class SimUtcWorld {
 public:
  SimUtcWorld(uint64_t seed, int64_t duration_ns);

  // What the sources of a host say from time 0 to the end, in ascending order of raw.
  std::vector<UtcReading> Read(const std::vector<UtcPlan>& plans, const TrueClock& raw,
                               Dice dice) const;
  // What the keeper of the reference stores of its own clocks.
  ClockEvidence ReadKeeper(const std::vector<UtcPlan>& plans,
                           const ReferenceClock& reference) const;

 private:
  UtcReading ReadOnce(const UtcPlan& plan, int64_t true_ns, uint64_t raw_ns, double bias_ns,
                      Dice& dice) const;

  uint64_t seed_;
  int64_t duration_ns_;
  TrueClock utc_;
};

}  // namespace neurontrace
