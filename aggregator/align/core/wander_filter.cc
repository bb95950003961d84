// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/wander_filter.h"

namespace neurontrace {

void WanderFilter::MoveTo(double seconds) {
  polygon_.Propagate(seconds - seconds_, limits_);
  seconds_ = seconds;
}

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
