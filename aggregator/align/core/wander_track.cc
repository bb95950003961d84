// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/wander_track.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neurontrace {
namespace {

using Outcome = WanderFilter::Outcome;

// How far apart sides may be to be compared: one burst of probes.
constexpr double kBurstSeconds = 0.02;

// The sharpest side so far, and what it implies at other times by the limits of the rate. Sharpness
// grows with what a side excludes, and a side loses rate_most ns of it per second of distance.
class TightestSide {
 public:
  bool Implies(const TrackSide& side, double rate_most) const {
    const double elapsed = std::abs(side.seconds - seconds_);
    return elapsed <= kBurstSeconds && Sharpness(side) <= sharpness_ - rate_most * elapsed;
  }
  void Become(const TrackSide& side) {
    seconds_ = side.seconds;
    sharpness_ = Sharpness(side);
  }

 private:
  static double Sharpness(const TrackSide& side) {
    return side.is_most ? -side.offset : side.offset;
  }

  double seconds_ = -std::numeric_limits<double>::infinity();
  double sharpness_ = 0;
};

// Returns the sides that no earlier one implies, in order. `begin` to `end` may run backwards in
// time.
template <typename Iterator>
std::vector<TrackSide> KeepTightest(Iterator begin, Iterator end, double rate_most) {
  TightestSide most;
  TightestSide least;
  std::vector<TrackSide> kept;
  kept.reserve(static_cast<size_t>(end - begin));
  for (Iterator side = begin; side != end; ++side) {
    TightestSide& tightest = side->is_most ? most : least;
    if (tightest.Implies(*side, rate_most)) continue;
    tightest.Become(*side);
    kept.push_back(*side);
  }
  return kept;
}

// A filter on its way along a track, in either direction.
class TrackPass {
 public:
  TrackPass(const TrackSide& first, const WanderPolygon& begin, const WanderLimits& limits,
            double tolerance, TrackVerdicts& verdicts)
      : filter_(first.seconds, begin, limits), tolerance_(tolerance), verdicts_(verdicts) {}

  // Adds a side unless its constraint is rejected; rejects the constraint if it contradicts.
  void Add(const TrackSide& side) {
    if (verdicts_.IsOut(side.constraint)) return;
    const Outcome outcome = side.is_most
                                ? filter_.AtMostWithin(tolerance_, side.seconds, side.offset)
                                : filter_.AtLeastWithin(tolerance_, side.seconds, side.offset);
    if (outcome == Outcome::kStretched) ++stretched_;
    if (outcome != Outcome::kContradiction) return;
    const Interval range = filter_.OffsetAt(side.seconds);
    verdicts_.Reject(side.constraint,
                     side.is_most ? side.offset - range.min : side.offset - range.max);
  }
  const WanderFilter& filter() const { return filter_; }
  size_t stretched() const { return stretched_; }

 private:
  WanderFilter filter_;
  size_t stretched_ = 0;
  double tolerance_;
  TrackVerdicts& verdicts_;
};

// Two sets that both contain the truth intersect. If they do not, evidence was wrong, and the union
// is the only safe answer.
TrackPoint Join(const WanderPolygon& before, const WanderPolygon& after) {
  if (const auto common = before.CommonOffset(after)) return {*common, false};
  const Interval a = before.Offset();
  const Interval b = after.Offset();
  return {{std::min(a.min, b.min), std::max(a.max, b.max)}, true};
}

}  // namespace

// One run in each direction: a side may be implied by an earlier or by a later one.
std::vector<TrackSide> DropImplied(std::span<const TrackSide> sides, Interval rate) {
  const double rate_most = std::max(std::abs(rate.min), std::abs(rate.max));
  std::vector<TrackSide> kept = KeepTightest(sides.begin(), sides.end(), rate_most);
  kept = KeepTightest(kept.rbegin(), kept.rend(), rate_most);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

// The forward pass keeps its set at every grid time, and the backward pass is joined with it there.
// A side at a grid time counts in both. A constraint that the forward pass rejected is skipped by
// the backward one.
TrackResult SmoothTrack(std::span<const TrackSide> sides, std::span<const double> grid,
                        const WanderPolygon& begin, const WanderLimits& limits, double tolerance,
                        TrackVerdicts& verdicts) {
  TrackPass forward(sides.front(), begin, limits, tolerance, verdicts);
  std::vector<WanderPolygon> before;
  before.reserve(grid.size());
  size_t next = 0;
  for (const double seconds : grid) {
    while (next < sides.size() && sides[next].seconds <= seconds) forward.Add(sides[next++]);
    before.push_back(forward.filter().At(seconds));
  }
  TrackResult result;
  // The rate is that of the forward pass alone: at its end it has seen every side.
  result.rate = forward.filter().At(sides.back().seconds).Rate();
  result.points.resize(grid.size());
  TrackPass backward(sides.back(), begin, limits, tolerance, verdicts);
  size_t left = sides.size();
  for (size_t i = grid.size(); i-- > 0;) {
    while (left > 0 && sides[left - 1].seconds >= grid[i]) backward.Add(sides[--left]);
    result.points[i] = Join(before[i], backward.filter().At(grid[i]));
  }
  result.stretched = forward.stretched() + backward.stretched();
  return result;
}

}  // namespace neurontrace
