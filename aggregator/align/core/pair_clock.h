// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

// When the one clock showed x, the other showed y_min to y_max. Each side is free to be missing.
// The likely sides need an assumption besides, on which only the likely bound and the estimate
// build.
struct ClockConstraint {
  static constexpr uint64_t kNoMin = 0;
  static constexpr uint64_t kNoMax = UINT64_MAX;

  uint64_t x_ns = 0;
  uint64_t y_min_ns = kNoMin;
  uint64_t y_max_ns = kNoMax;
  uint64_t likely_min_ns = kNoMin;
  uint64_t likely_max_ns = kNoMax;
  uint32_t source = 0;  // whatever the caller calls it
  friend bool operator==(const ClockConstraint&, const ClockConstraint&) = default;
};

struct PairParameters {
  WanderLimits wander;
  // The rate of y - x to begin with, ns/s.
  Interval rate{-100'000, 100'000};
  // A likely side that contradicts by no more than this only widens what is likely.
  double likely_tolerance_ns = 1'000;
};

// Where in the numbers of one fit a time is: whole nanoseconds in, small doubles out.
struct PairOrigin {
  uint64_t x_ns = 0;
  int64_t offset_ns = 0;  // y - x that counts as 0

  // Of a constraint: its x, and the middle of what it says of y.
  static PairOrigin Of(const ClockConstraint& constraint);

  double Seconds(uint64_t x) const {
    return static_cast<double>(static_cast<int64_t>(x - x_ns)) * 1e-9;
  }
  double Offset(uint64_t x, uint64_t y) const {
    return static_cast<double>(static_cast<int64_t>(y - x - static_cast<uint64_t>(offset_ns)));
  }
  // The y of an offset at x, rounded down.
  uint64_t Y(uint64_t x, double offset) const;
};

// What is known of y at an x: it is y_ns, and at most so far off.
struct ClockEstimate {
  uint64_t y_ns = 0;
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  friend bool operator==(const ClockEstimate&, const ClockEstimate&) = default;
};
// What constraints say of one clock by another while they come in, in ascending order of x: the
// live view. Constant size, less than 1 KiB. One thread at a time.
class PairClock {
 public:
  PairClock(const ClockConstraint& first, const PairParameters& parameters);

  struct Outcome {
    WanderFilter::Outcome possible = WanderFilter::Outcome::kSlack;
    WanderFilter::Outcome likely = WanderFilter::Outcome::kSlack;
  };
  // The worse of the outcomes of its two sides. A side that contradicts is left out.
  Outcome Add(const ClockConstraint& constraint);

 private:
  PairOrigin origin_;
  double likely_tolerance_ns_;
  WanderFilter possible_;
  WanderFilter likely_;
};

// Before anything is known: a thousand seconds on either side of what the first constraint says.
// The first on a side leaves nothing of it.
inline constexpr double kAnyOffsetNs = 1e12;

// The filter of a pass that begins at x and knows nothing but the limits.
WanderFilter UnknownOffset(const PairOrigin& origin, uint64_t x_ns, Interval rate,
                           const WanderLimits& limits);

// One constraint into the filters of a pass, in either direction of time.
WanderFilter::Outcome AddPossible(const PairOrigin& origin, const ClockConstraint& constraint,
                                  WanderFilter& filter);
WanderFilter::Outcome AddLikely(const PairOrigin& origin, const ClockConstraint& constraint,
                                double tolerance_ns, WanderFilter& filter);

}  // namespace neurontrace
