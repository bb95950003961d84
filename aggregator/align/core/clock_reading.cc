// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_reading.h"

#include <algorithm>
#include <cmath>

#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// value * numerator / denominator, rounded down.
Wide FloorRatio(Wide value, Wide numerator, Wide denominator) {
  const Wide product = value * numerator;
  const Wide quotient = product / denominator;
  return quotient * denominator > product ? quotient - 1 : quotient;
}

// Returns y on the line through two knots, `first` being the earlier.
uint64_t OnLine(const ClockKnot& first, const ClockKnot& second, uint64_t x_ns) {
  const Wide rise = (Wide{second.y_ns} - Wide{first.y_ns}) - (Wide{second.x_ns} - Wide{first.x_ns});
  const Wide elapsed = Wide{x_ns} - Wide{first.x_ns};
  return Saturate(Wide{first.y_ns} + elapsed +
                  FloorRatio(elapsed, rise, Wide{second.x_ns} - Wide{first.x_ns}));
}

// Returns the bound at a distance from the nearest knot, beyond which nothing limits the rate but
// kUnknownRate. Rounds up.
uint64_t AddDrift(uint64_t bound_ns, uint64_t distance_ns) {
  const double drift = std::ceil(static_cast<double>(distance_ns) * kUnknownRate);
  return Saturate(Wide{bound_ns} + static_cast<Wide>(drift));
}

// Values of y that are possible; the minimum may be below 0.
struct Range {
  Wide min = 0;
  Wide max = 0;
};

Range RangeOf(const ClockEstimate& estimate, uint64_t bound_ns) {
  return {Wide{estimate.y_ns} - Wide{bound_ns}, Wide{estimate.y_ns} + Wide{bound_ns}};
}

// A time between two segments, and what either makes of it if that is possible.
class Gap {
 public:
  // y cannot leave `between_`, as both clocks run forwards: it begins at the least y of the last
  // knot before the gap, and ends at the greatest y of the first knot after it.
  Gap(const ClockSegment& before, const ClockSegment& after, uint64_t x_ns)
      : before_(EvaluateSegment(before, x_ns)), after_(EvaluateSegment(after, x_ns)) {
    const ClockKnot& last = before.knots.back();
    const ClockKnot& first = after.knots.front();
    between_ = {Wide{last.y_ns} - Wide{last.bound_ns}, Wide{first.y_ns} + Wide{first.bound_ns}};
  }

  // Returns the only reading that is possible, or the middle of both. If neither is possible the
  // evidence was wrong, and both count.
  ClockReading Read(size_t segment) const {
    const bool can_be_before = IsBetween(before_);
    const bool can_be_after = IsBetween(after_);
    if (can_be_before && !can_be_after) return {before_, segment, false};
    if (can_be_after && !can_be_before) return {after_, segment + 1, false};
    const Range possible =
        Both(RangeOf(before_, before_.bound_ns), RangeOf(after_, after_.bound_ns));
    const Range likely =
        Both(RangeOf(before_, before_.likely_bound_ns), RangeOf(after_, after_.likely_bound_ns));
    const Wide y = likely.min + (likely.max - likely.min) / 2;
    ClockEstimate estimate{Saturate(y), Reach(possible, y), Reach(likely, y)};
    return {estimate, segment, true};
  }

 private:
  // Returns whether any y of the estimate is between the two segments.
  bool IsBetween(const ClockEstimate& estimate) const {
    const Range range = RangeOf(estimate, estimate.bound_ns);
    return range.max >= between_.min && range.min <= between_.max;
  }
  // Returns the smallest range that contains both.
  static Range Both(Range a, Range b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
  // Returns how far the range extends from y.
  static uint64_t Reach(Range range, Wide y) {
    return Saturate(std::max(range.max - y, y - range.min));
  }

  ClockEstimate before_;
  ClockEstimate after_;
  Range between_;
};

}  // namespace

// Between two knots y is on their line. Before the first and after the last knot the outermost line
// continues, and with a single knot y runs as fast as x.
ClockEstimate EvaluateSegment(const ClockSegment& segment, uint64_t x_ns) {
  const std::vector<ClockKnot>& knots = segment.knots;
  const ClockKnot& front = knots.front();
  const ClockKnot& back = knots.back();
  const auto after = std::upper_bound(knots.begin(), knots.end(), x_ns,
                                      [](uint64_t x, const ClockKnot& k) { return x < k.x_ns; });
  if (knots.size() == 1) {
    const uint64_t distance = x_ns < front.x_ns ? front.x_ns - x_ns : x_ns - front.x_ns;
    return {Saturate(Wide{front.y_ns} + Wide{x_ns} - Wide{front.x_ns}),
            AddDrift(front.bound_ns, distance), AddDrift(front.likely_bound_ns, distance)};
  }
  if (after == knots.begin()) {
    const uint64_t distance = front.x_ns - x_ns;
    return {OnLine(front, knots[1], x_ns), AddDrift(front.bound_ns, distance),
            AddDrift(front.likely_bound_ns, distance)};
  }
  if (after == knots.end()) {
    if (x_ns == back.x_ns) return {back.y_ns, back.bound_ns, back.likely_bound_ns};
    const uint64_t distance = x_ns - back.x_ns;
    return {OnLine(knots[knots.size() - 2], back, x_ns), AddDrift(back.bound_ns, distance),
            AddDrift(back.likely_bound_ns, distance)};
  }
  const ClockKnot& first = *(after - 1);
  if (x_ns == first.x_ns) return {first.y_ns, first.bound_ns, first.likely_bound_ns};
  return {OnLine(first, *after, x_ns), std::max(first.bound_ns, after->bound_ns),
          std::max(first.likely_bound_ns, after->likely_bound_ns)};
}

ClockReading EvaluateClock(const ClockModel& model, uint64_t x_ns) {
  const std::vector<ClockSegment>& segments = model.segments;
  if (segments.empty()) return {{x_ns, kNoBound, kNoBound}, 0, false};
  const auto after =
      std::upper_bound(segments.begin(), segments.end(), x_ns,
                       [](uint64_t x, const ClockSegment& s) { return x < s.knots.front().x_ns; });
  // Before all knots the first segment continues backwards.
  if (after == segments.begin()) return {EvaluateSegment(segments.front(), x_ns), 0, false};
  const auto before = after - 1;
  const auto index = static_cast<size_t>(before - segments.begin());
  if (after == segments.end() || x_ns <= before->knots.back().x_ns) {
    return {EvaluateSegment(*before, x_ns), index, false};
  }
  return Gap(*before, *after, x_ns).Read(index);
}

}  // namespace neurontrace
