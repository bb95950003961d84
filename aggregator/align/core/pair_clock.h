// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

// When one clock showed x, the other showed y_min to y_max. Either side may be missing. The likely
// sides rest on an assumption, and only the likely bound and the estimate use them. The form in
// which probes, readings of UTC and the evidence of devices enter a fit.
struct ClockConstraint {
  static constexpr uint64_t kNoMin = 0;
  static constexpr uint64_t kNoMax = UINT64_MAX;

  uint64_t x_ns = 0;
  uint64_t y_min_ns = kNoMin;
  uint64_t y_max_ns = kNoMax;
  uint64_t likely_min_ns = kNoMin;
  uint64_t likely_max_ns = kNoMax;
  uint32_t source = 0;  // chosen by the caller
  friend bool operator==(const ClockConstraint&, const ClockConstraint&) = default;
};

// How two clocks may differ. The same parameters apply to the possible and the likely set.
struct PairParameters {
  WanderLimits wander;
  // Possible rates of y - x at the beginning, in ns/s.
  Interval rate{-100'000, 100'000};
  // A likely side that contradicts by no more than this widens what is likely instead of being
  // rejected.
  double likely_tolerance_ns = 1'000;
};

// Origin of the numbers of one fit: times are whole nanoseconds outside and small doubles inside,
// where a double has room for fractions of a nanosecond. Offsets from it must stay within the range
// that WanderPolygon states.
struct PairOrigin {
  uint64_t x_ns = 0;
  int64_t offset_ns = 0;  // the y - x that counts as 0

  // Returns the origin at a constraint: its x, and the middle of its interval of y. A constraint
  // with only one side counts as that side. Requires at least one.
  static PairOrigin Of(const ClockConstraint& constraint);

  // Convert to the fit's numbers: seconds since x_ns, and offsets in ns. Both accept times before
  // the origin as well: the difference is taken as signed.
  double Seconds(uint64_t x) const {
    return static_cast<double>(static_cast<int64_t>(x - x_ns)) * 1e-9;
  }
  double Offset(uint64_t x, uint64_t y) const {
    return static_cast<double>(static_cast<int64_t>(y - x - static_cast<uint64_t>(offset_ns)));
  }
  // Returns the y of an offset at x, rounded down. The caller keeps the sum within the scale: it
  // wraps like the type.
  uint64_t Y(uint64_t x, double offset) const;
};

// An estimate of y at some x, with the largest possible and likely errors. `likely_bound_ns` is at
// most `bound_ns`.
struct ClockEstimate {
  uint64_t y_ns = 0;
  uint64_t bound_ns = 0;
  uint64_t likely_bound_ns = 0;
  friend bool operator==(const ClockEstimate&, const ClockEstimate&) = default;
};
// The state of one clock by another while constraints arrive in ascending order of x: the live
// view. Constant size, less than 1 KiB. One thread at a time.
class PairClock {
 public:
  // The first constraint sets the origin of all numbers and is added like every other.
  PairClock(const ClockConstraint& first, const PairParameters& parameters);

  // States what the constraint changed in each set.
  struct Outcome {
    WanderFilter::Outcome possible = WanderFilter::Outcome::kSlack;
    WanderFilter::Outcome likely = WanderFilter::Outcome::kSlack;
  };
  // Returns the worse outcome of the two sides. A contradicting side is not used.
  Outcome Add(const ClockConstraint& constraint);

 private:
  PairOrigin origin_;
  double likely_tolerance_ns_;
  WanderFilter possible_;
  WanderFilter likely_;
};

// Before anything is known: a thousand seconds around the first constraint. The first constraint on
// a side removes all of that side.
inline constexpr double kAnyOffsetNs = 1e12;

// Returns the filter of a pass that begins at x and knows nothing but the limits. A pass runs
// forwards or backwards; x is where it begins.
WanderFilter UnknownOffset(const PairOrigin& origin, uint64_t x_ns, Interval rate,
                           const WanderLimits& limits);

// Add one constraint to the filters of a pass, in either direction of time. AddPossible uses only
// y_min_ns and y_max_ns and tolerates no contradiction. AddLikely uses the sharper of the possible
// and the likely side. Both return the worse outcome of the two sides.
WanderFilter::Outcome AddPossible(const PairOrigin& origin, const ClockConstraint& constraint,
                                  WanderFilter& filter);
WanderFilter::Outcome AddLikely(const PairOrigin& origin, const ClockConstraint& constraint,
                                double tolerance_ns, WanderFilter& filter);

}  // namespace neurontrace
