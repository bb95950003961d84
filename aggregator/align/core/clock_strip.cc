// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_strip.h"

#include <algorithm>
#include <cmath>

#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// y is rounded down at the knots and again where it is read.
constexpr double kRounding = 2;

// Returns the estimate, moved to the nearest value that is likely, then possible. If the two
// exclude each other the possible range decides.
double EstimateAt(const StripPoint& point) {
  const double likely = std::clamp(point.estimate, point.likely.min, point.likely.max);
  return std::clamp(likely, point.possible.min, point.possible.max);
}

// Decides whether one line may span points of different widths: it has one bound, the largest, so a
// narrow point would become as uncertain as a wide one.
class WidthGate {
 public:
  explicit WidthGate(double tolerance_ns) : tolerance_ns_(tolerance_ns) {}
  // Starts a line at a point.
  void Begin(const StripPoint& point) {
    possible_ = likely_ = {INFINITY, 0};
    Admits(point);
  }
  // Adds a point to the line and returns whether its width still suits the line.
  bool Admits(const StripPoint& point) {
    const bool possible = Admits(point.possible.width(), possible_);
    const bool likely = Admits(point.likely.width(), likely_);
    return possible && likely;  // not short-circuited: both ranges must be widened
  }

 private:
  // 1.25 keeps bounds within a quarter of the best; the tolerance lets narrow strips vary freely.
  bool Admits(double width, Interval& range) const {
    range = {std::min(range.min, width), std::max(range.max, width)};
    return range.max <= 1.25 * range.min + 4 * tolerance_ns_;
  }
  double tolerance_ns_;
  Interval possible_;
  Interval likely_;
};

// Chooses the points that become knots. From each, the next is the farthest that a straight line
// reaches with every point in between within the tolerance. Each point narrows the range of slopes,
// the door; the first point outside it ends the line.
std::vector<size_t> ChooseKnots(std::span<const StripPoint> strip, const PairOrigin& origin,
                                double tolerance_ns) {
  std::vector<size_t> chosen = {0};
  WidthGate widths(tolerance_ns);
  Interval door;  // slopes
  const auto begin = [&](size_t i) {
    door = {-INFINITY, INFINITY};
    widths.Begin(strip[i]);
  };
  const auto slope = [&](size_t i, double beside) {
    const StripPoint& from = strip[chosen.back()];
    return (EstimateAt(strip[i]) + beside - EstimateAt(from)) /
           (origin.Seconds(strip[i].x_ns) - origin.Seconds(from.x_ns));
  };
  begin(0);
  for (size_t i = 1; i < strip.size(); ++i) {
    const double direct = slope(i, 0);
    const bool narrow = widths.Admits(strip[i]);
    if (chosen.back() + 1 < i && (direct < door.min || direct > door.max || !narrow)) {
      chosen.push_back(i - 1);
      begin(i - 1);
      widths.Admits(strip[i]);
    }
    door.min = std::max(door.min, slope(i, -tolerance_ns));
    door.max = std::min(door.max, slope(i, tolerance_ns));
  }
  if (strip.size() > 1) chosen.push_back(strip.size() - 1);
  return chosen;
}

// Returns how far beyond `offset` the range extends, at most on either side; 0 if it does not.
double Beyond(Interval range, double offset) {
  return std::max({0.0, range.max - offset, offset - range.min});
}

// Distances in ns.
struct Bounds {
  double possible = 0;
  double likely = 0;
};

// Returns how far the strip from point `first` to `last` is from the line between the two at most.
// Both are straight between points, so the distance is greatest at one of them.
Bounds BoundsOf(std::span<const StripPoint> strip, size_t first, size_t last,
                const PairOrigin& origin, const WanderLimits& limits) {
  const double x0 = origin.Seconds(strip[first].x_ns);
  const double y0 = EstimateAt(strip[first]);
  const double slope =
      first == last ? 0 : (EstimateAt(strip[last]) - y0) / (origin.Seconds(strip[last].x_ns) - x0);
  Bounds bounds;
  double sagitta = 0;
  for (size_t i = first; i <= last; ++i) {
    const double x = origin.Seconds(strip[i].x_ns);
    if (i > first)
      sagitta = std::max(sagitta, limits.SagittaNs(x - origin.Seconds(strip[i - 1].x_ns)));
    const double y = y0 + slope * (x - x0);
    bounds.possible = std::max(bounds.possible, Beyond(strip[i].possible, y));
    bounds.likely = std::max(bounds.likely, Beyond(strip[i].likely, y));
  }
  bounds.possible += sagitta;
  bounds.likely = std::min(bounds.likely + sagitta, bounds.possible);
  return bounds;
}

// Contradictory evidence can lead where no clock goes: backwards, or at more than twice the speed
// of the other. Knots are moved to the nearest possible place, and bounds grow by the distance; for
// a knot between two lines, both bounds do.
void KeepLinesPossible(std::vector<ClockKnot>& knots) {
  for (size_t k = 1; k < knots.size(); ++k) {
    const ClockKnot before = knots[k - 1];
    ClockKnot& knot = knots[k];
    const uint64_t most_ns = Saturate(Wide{before.y_ns} + 2 * (Wide{knot.x_ns} - before.x_ns));
    const uint64_t y_ns = std::clamp(knot.y_ns, before.y_ns, most_ns);
    if (y_ns == knot.y_ns) continue;
    const uint64_t moved_ns = std::max(y_ns, knot.y_ns) - std::min(y_ns, knot.y_ns);
    const ClockKnot& after = knots[std::min(k + 1, knots.size() - 1)];
    const auto grown = [&](uint64_t ClockKnot::*bound) {
      return Saturate(Wide{std::max({before.*bound, knot.*bound, after.*bound})} + moved_ns);
    };
    knot = {knot.x_ns, y_ns, grown(&ClockKnot::bound_ns), grown(&ClockKnot::likely_bound_ns)};
  }
}

}  // namespace

std::vector<ClockKnot> KnotsOf(std::span<const StripPoint> strip, const PairOrigin& origin,
                               const WanderLimits& limits, double tolerance_ns) {
  if (strip.empty()) return {};
  const std::vector<size_t> chosen = ChooseKnots(strip, origin, tolerance_ns);
  std::vector<Bounds> bounds;
  for (const size_t i : chosen) bounds.push_back(BoundsOf(strip, i, i, origin, limits));
  // Between two knots the larger of their bounds applies, so only the larger has to cover what lies
  // between.
  for (size_t k = 0; k + 1 < chosen.size(); ++k) {
    const Bounds between = BoundsOf(strip, chosen[k], chosen[k + 1], origin, limits);
    const auto answer = [k, &bounds, &between](double Bounds::*side) {
      double& larger = std::max(bounds[k].*side, bounds[k + 1].*side) == bounds[k].*side
                           ? bounds[k].*side
                           : bounds[k + 1].*side;
      larger = std::max(larger, between.*side);
    };
    answer(&Bounds::possible);
    answer(&Bounds::likely);
  }
  std::vector<ClockKnot> knots;
  for (size_t k = 0; k < chosen.size(); ++k) {
    const StripPoint& point = strip[chosen[k]];
    // Different knots may have been chosen to cover what is possible and what is likely.
    const double possible = std::max(bounds[k].possible, bounds[k].likely);
    knots.push_back({point.x_ns, origin.Y(point.x_ns, EstimateAt(point)),
                     static_cast<uint64_t>(std::ceil(possible + kRounding)),
                     static_cast<uint64_t>(std::ceil(bounds[k].likely + kRounding))});
  }
  KeepLinesPossible(knots);
  return knots;
}

}  // namespace neurontrace
