// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/pair_clock.h"

#include <algorithm>
#include <cmath>

namespace neurontrace {
namespace {

using Outcome = WanderFilter::Outcome;

}  // namespace

// The middle of the constraint is near the truth, so the numbers of the fit stay small.
PairOrigin PairOrigin::Of(const ClockConstraint& constraint) {
  uint64_t low = std::max(constraint.y_min_ns, constraint.likely_min_ns);
  uint64_t high = std::min(constraint.y_max_ns, constraint.likely_max_ns);
  if (low == ClockConstraint::kNoMin) low = high;
  if (high == ClockConstraint::kNoMax) high = low;
  // The sum could overflow.
  const uint64_t y = low / 2 + high / 2;
  return {constraint.x_ns, static_cast<int64_t>(y - constraint.x_ns)};
}

// The arithmetic is unsigned: the offset may be negative, and wrapping gives the right sum.
uint64_t PairOrigin::Y(uint64_t x, double offset) const {
  return x + static_cast<uint64_t>(offset_ns) +
         static_cast<uint64_t>(static_cast<int64_t>(std::floor(offset)));
}

// The filter has a box of all offsets and the given rates.
WanderFilter UnknownOffset(const PairOrigin& origin, uint64_t x_ns, Interval rate,
                           const WanderLimits& limits) {
  return WanderFilter(origin.Seconds(x_ns), WanderPolygon({-kAnyOffsetNs, kAnyOffsetNs}, rate),
                      limits);
}

// The upper side is added first. Each side is used or not by itself: a contradiction of one does
// not undo the other.
Outcome AddPossible(const PairOrigin& origin, const ClockConstraint& constraint,
                    WanderFilter& filter) {
  const double seconds = origin.Seconds(constraint.x_ns);
  Outcome outcome = Outcome::kSlack;
  if (constraint.y_max_ns != ClockConstraint::kNoMax) {
    outcome = filter.AtMost(seconds, origin.Offset(constraint.x_ns, constraint.y_max_ns));
  }
  if (constraint.y_min_ns != ClockConstraint::kNoMin) {
    outcome = std::max(
        outcome, filter.AtLeast(seconds, origin.Offset(constraint.x_ns, constraint.y_min_ns)));
  }
  return outcome;
}

// A possible side is also likely, so the sharper of the two is used. The tolerance absorbs routes
// that are not quite symmetric.
Outcome AddLikely(const PairOrigin& origin, const ClockConstraint& constraint, double tolerance_ns,
                  WanderFilter& filter) {
  const double seconds = origin.Seconds(constraint.x_ns);
  const uint64_t most = std::min(constraint.y_max_ns, constraint.likely_max_ns);
  const uint64_t least = std::max(constraint.y_min_ns, constraint.likely_min_ns);
  Outcome outcome = Outcome::kSlack;
  if (most != ClockConstraint::kNoMax) {
    outcome = filter.AtMostWithin(tolerance_ns, seconds, origin.Offset(constraint.x_ns, most));
  }
  if (least != ClockConstraint::kNoMin) {
    outcome = std::max(outcome, filter.AtLeastWithin(tolerance_ns, seconds,
                                                     origin.Offset(constraint.x_ns, least)));
  }
  return outcome;
}

// Both filters begin with the same set; the likely one then only becomes narrower.
PairClock::PairClock(const ClockConstraint& first, const PairParameters& parameters)
    : origin_(PairOrigin::Of(first)),
      likely_tolerance_ns_(parameters.likely_tolerance_ns),
      possible_(UnknownOffset(origin_, first.x_ns, parameters.rate, parameters.wander)),
      likely_(possible_) {
  Add(first);
}

PairClock::Outcome PairClock::Add(const ClockConstraint& constraint) {
  Outcome outcome;
  outcome.possible = AddPossible(origin_, constraint, possible_);
  // A constraint that contradicts what is certain is not used for what is likely either.
  outcome.likely = outcome.possible == WanderFilter::Outcome::kContradiction
                       ? outcome.possible
                       : AddLikely(origin_, constraint, likely_tolerance_ns_, likely_);
  return outcome;
}

}  // namespace neurontrace
