// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

// The set grows with the distance, so the filter moves only when a constraint tightens it.
void WanderFilter::MoveTo(double seconds) {
  polygon_.Propagate(seconds - seconds_, limits_);
  seconds_ = seconds;
}

// Works on a copy, so that reading a time does not move the filter itself.
WanderPolygon WanderFilter::At(double seconds) const {
  WanderPolygon polygon = polygon_;
  polygon.Propagate(seconds - seconds_, limits_);
  return polygon;
}

WanderFilter::Outcome WanderFilter::AtMost(double seconds, double offset) {
  return AtMostWithin(0, seconds, offset);
}

WanderFilter::Outcome WanderFilter::AtLeast(double seconds, double offset) {
  return AtLeastWithin(0, seconds, offset);
}

// Compares with the exact range first: most constraints change nothing, and they cost no
// propagation.
WanderFilter::Outcome WanderFilter::AtMostWithin(double tolerance, double seconds, double offset) {
  const Interval range = OffsetAt(seconds);
  if (range.max <= offset) return Outcome::kSlack;
  const double beyond = range.min - offset;
  if (beyond > tolerance) return Outcome::kContradiction;
  MoveTo(seconds);
  // A rate that was wrong by this much for a second would explain the difference, too.
  if (beyond > 0) polygon_.Widen(beyond, beyond);
  if (!polygon_.ClipAtMost(offset)) return Outcome::kContradiction;
  return beyond > 0 ? Outcome::kStretched : Outcome::kTightened;
}

// The mirror image of AtMostWithin.
WanderFilter::Outcome WanderFilter::AtLeastWithin(double tolerance, double seconds, double offset) {
  const Interval range = OffsetAt(seconds);
  if (range.min >= offset) return Outcome::kSlack;
  const double beyond = offset - range.max;
  if (beyond > tolerance) return Outcome::kContradiction;
  MoveTo(seconds);
  if (beyond > 0) polygon_.Widen(beyond, beyond);
  if (!polygon_.ClipAtLeast(offset)) return Outcome::kContradiction;
  return beyond > 0 ? Outcome::kStretched : Outcome::kTightened;
}

}  // namespace neurontrace
