// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/align/core/wander_polygon.h"

namespace neurontrace {

// What the constraints so far say of a clock, as they come in order of time, or all in reverse
// order. A constraint that says nothing new costs one pass over the corners and changes nothing.
// A value of less than 500 bytes.
class WanderFilter {
 public:
  enum class Outcome : uint8_t {
    kSlack,          // known already
    kTightened,      // something was ruled out
    kStretched,      // everything was, but for the tolerance
    kContradiction,  // it would have ruled out everything: left out
  };

  WanderFilter(double seconds, const WanderPolygon& polygon, const WanderLimits& limits)
      : limits_(limits), seconds_(seconds), polygon_(polygon) {}

  // At `seconds` the offset is at most (at least) `offset`.
  Outcome AtMost(double seconds, double offset);
  Outcome AtLeast(double seconds, double offset);
  // The same of a constraint that would contradict by no more than `tolerance`: then the clock is
  // thought to have strayed more than it should, and what is known gives way so far.
  Outcome AtMostWithin(double tolerance, double seconds, double offset);
  Outcome AtLeastWithin(double tolerance, double seconds, double offset);

  Interval OffsetAt(double seconds) const {
    return polygon_.OffsetAfter(seconds - seconds_, limits_);
  }
  WanderPolygon At(double seconds) const;

 private:
  void MoveTo(double seconds);

  WanderLimits limits_;
  double seconds_;  // that polygon_ is of
  WanderPolygon polygon_;
};

}  // namespace neurontrace
