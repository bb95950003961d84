// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/align/core/wander_polygon.h"

namespace neurontrace {

// The set of states that a clock can have after the constraints so far, which arrive in order of
// time or all in reverse order. A constraint without new information costs one pass over the
// corners and changes nothing. Set-membership filtering: the state is known as a set that contains
// the truth, and never as a probability. A value of less than 500 bytes.
class WanderFilter {
 public:
  // In order of severity.
  enum class Outcome : uint8_t {
    kSlack,          // known already
    kTightened,      // excluded something
    kStretched,      // contradicted within the tolerance: the set was widened first
    kContradiction,  // would have excluded everything, and was not used
  };

  WanderFilter(double seconds, const WanderPolygon& polygon, const WanderLimits& limits)
      : limits_(limits), seconds_(seconds), polygon_(polygon) {}

  // Adds the constraint that at `seconds` the offset, in ns, is at most, or at least, `offset`. A
  // NaN counts as a contradiction. `seconds` may be on either side of the earlier constraints, but
  // a pass that jumps back and forth only grows the set.
  Outcome AtMost(double seconds, double offset);
  Outcome AtLeast(double seconds, double offset);
  // Adds a constraint that may contradict by up to `tolerance`, in ns; 0 is the plain form. The
  // clock is then assumed to have strayed more than the limits allow, and the set is widened by the
  // difference.
  Outcome AtMostWithin(double tolerance, double seconds, double offset);
  Outcome AtLeastWithin(double tolerance, double seconds, double offset);

  // Returns the possible offsets at a time, and the whole set. Neither changes the filter.
  Interval OffsetAt(double seconds) const {
    return polygon_.OffsetAfter(seconds - seconds_, limits_);
  }
  WanderPolygon At(double seconds) const;

 private:
  // Advances polygon_ to `seconds`, whichever way time runs.
  void MoveTo(double seconds);

  WanderLimits limits_;
  double seconds_;  // the time that polygon_ describes
  WanderPolygon polygon_;
};

}  // namespace neurontrace
