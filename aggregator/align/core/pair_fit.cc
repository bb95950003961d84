// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/pair_fit.h"

#include <algorithm>
#include <cmath>

#include "aggregator/align/core/clock_strip.h"
#include "aggregator/align/core/wander_track.h"

namespace neurontrace {
namespace {

// One run of FitPair. It smooths three times on the same grid: for what is possible, for what is
// likely, and for the estimate. The possible pass comes first because what it rejects is used by
// neither of the others. Each pass is linear in the constraints.
class PairFitter {
 public:
  PairFitter(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters)
      : constraints_(constraints),
        parameters_(parameters),
        origin_(PairOrigin::Of(constraints.front())),
        verdicts_(constraints.size()) {}

  PairFit Run();

 private:
  void MakeGrid();
  void AddReach();
  // Return the sides of all constraints that a pass may use, thinned by DropImplied.
  std::vector<TrackSide> PossibleSides() const;
  std::vector<TrackSide> LikelySides() const;
  void AddSide(size_t i, uint64_t y_ns, bool is_most, std::vector<TrackSide>& sides) const;
  // Runs the filter over the grid. Rejected constraints are recorded in verdicts_.
  TrackResult Smooth(const std::vector<TrackSide>& sides, const WanderLimits& limits,
                     double tolerance);
  WanderLimits QuietWander(const TrackResult& likely) const;
  // Returns the seconds from the origin to a point of the grid.
  double Seconds(size_t grid) const { return origin_.Seconds(grid_[grid]); }

  std::span<const ClockConstraint> constraints_;
  const PairFitParameters& parameters_;
  PairOrigin origin_;
  TrackVerdicts verdicts_;
  std::vector<uint64_t> grid_;  // ascending
};

// Chooses times about one grid step apart, at constraints; at most sixteen in a gap without any, so
// that a long silence costs little.
void PairFitter::MakeGrid() {
  const double step = parameters_.grid_s;
  for (const ClockConstraint& constraint : constraints_) {
    if (grid_.empty()) {
      grid_.push_back(constraint.x_ns);
      continue;
    }
    const uint64_t from = grid_.back();
    const double gap = origin_.Seconds(constraint.x_ns) - origin_.Seconds(from);
    const bool last = &constraint == &constraints_.back();
    if (constraint.x_ns == from || (gap < step && !last)) continue;
    const auto steps = static_cast<uint64_t>(std::clamp(std::floor(gap / step), 1.0, 16.0));
    for (uint64_t k = 1; k <= steps; ++k) {
      grid_.push_back(from + (constraint.x_ns - from) / steps * k);
    }
    grid_.back() = constraint.x_ns;
  }
  AddReach();
}

// Adds times on either side at distances that grow fourfold, as bounds there grow with the
// distance.
void PairFitter::AddReach() {
  std::vector<uint64_t> before;
  const uint64_t first = grid_.front();
  const uint64_t last = grid_.back();
  const auto most_ns = static_cast<uint64_t>(parameters_.reach_s * 1e9);
  const auto fill = [most_ns](uint64_t room, auto add) {
    room = std::min(room, most_ns);
    for (uint64_t reach = 500'000'000; reach < room; reach *= 4) add(reach);
    if (room > 0) add(room);
  };
  if (parameters_.x_begin_ns < first) {
    fill(first - parameters_.x_begin_ns, [&](uint64_t reach) { before.push_back(first - reach); });
  }
  if (parameters_.x_end_ns > last) {
    fill(parameters_.x_end_ns - last, [&](uint64_t reach) { grid_.push_back(last + reach); });
  }
  grid_.insert(grid_.begin(), before.rbegin(), before.rend());
}

// Adds one side of constraint i, in the numbers of the fit.
void PairFitter::AddSide(size_t i, uint64_t y_ns, bool is_most,
                         std::vector<TrackSide>& sides) const {
  const uint64_t x_ns = constraints_[i].x_ns;
  sides.push_back(
      {origin_.Seconds(x_ns), origin_.Offset(x_ns, y_ns), static_cast<uint32_t>(i), is_most});
}

std::vector<TrackSide> PairFitter::PossibleSides() const {
  std::vector<TrackSide> sides;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    const ClockConstraint& c = constraints_[i];
    if (c.y_max_ns != ClockConstraint::kNoMax) AddSide(i, c.y_max_ns, true, sides);
    if (c.y_min_ns != ClockConstraint::kNoMin) AddSide(i, c.y_min_ns, false, sides);
  }
  return DropImplied(sides, parameters_.pair.rate);
}

std::vector<TrackSide> PairFitter::LikelySides() const {
  std::vector<TrackSide> sides;
  for (size_t i = 0; i < constraints_.size(); ++i) {
    // A constraint that is impossible cannot be likely.
    if (verdicts_.IsOut(i)) continue;
    const ClockConstraint& c = constraints_[i];
    const uint64_t most = std::min(c.y_max_ns, c.likely_max_ns);
    const uint64_t least = std::max(c.y_min_ns, c.likely_min_ns);
    if (most != ClockConstraint::kNoMax) AddSide(i, most, true, sides);
    if (least != ClockConstraint::kNoMin) AddSide(i, least, false, sides);
  }
  return DropImplied(sides, parameters_.pair.rate);
}

TrackResult PairFitter::Smooth(const std::vector<TrackSide>& sides, const WanderLimits& limits,
                               double tolerance) {
  std::vector<double> grid;
  grid.reserve(grid_.size());
  for (const uint64_t x_ns : grid_) grid.push_back(origin_.Seconds(x_ns));
  const WanderPolygon anything({-kAnyOffsetNs, kAnyOffsetNs}, parameters_.pair.rate);
  // Without sides nothing is known anywhere.
  if (sides.empty()) return {std::vector<TrackPoint>(grid.size(), {anything.Offset(), false}), {}};
  return SmoothTrack(sides, grid, anything, limits, tolerance, verdicts_);
}

// Estimates how much the clock actually wandered: the upper quartile of how the curve bends over
// about half a minute. Short bends are noise of the evidence, and long ones average the wander
// away.
WanderLimits PairFitter::QuietWander(const TrackResult& likely) const {
  // In steps of the grid: 16 s on either side with the default grid.
  constexpr size_t kSteps = 8;
  // Neighbouring intervals of too different lengths do not measure a bend.
  constexpr double kUneven = 1.2;
  constexpr double kLongestSeconds = 60;
  // With fewer bends the quartile means nothing, and the full limits apply.
  constexpr size_t kBendsMin = 8;
  std::vector<double> bends;
  for (size_t i = kSteps; i + kSteps < grid_.size(); ++i) {
    const double before = Seconds(i) - Seconds(i - kSteps);
    const double after = Seconds(i + kSteps) - Seconds(i);
    if (before > kUneven * after || after > kUneven * before || before > kLongestSeconds) continue;
    const auto middle = [&](size_t at) { return likely.points[at].offset.middle(); };
    const double bend =
        (middle(i + kSteps) - middle(i)) / after - (middle(i) - middle(i - kSteps)) / before;
    bends.push_back(std::abs(bend) * 2 / (before + after));
  }
  const WanderLimits& limits = parameters_.pair.wander;
  double share = 1;
  if (bends.size() >= kBendsMin) {
    const auto usual = bends.begin() + static_cast<ptrdiff_t>(bends.size() * 3 / 4);
    std::nth_element(bends.begin(), usual, bends.end());
    share = std::clamp(parameters_.calm_factor * *usual / limits.wander_ns_per_s2, 0.1, 1.0);
  }
  return {limits.wander_ns_per_s2 * share, limits.rate_change_ns_per_s * share};
}

// The order of the three passes matters: verdicts accumulate from one to the next.
PairFit PairFitter::Run() {
  MakeGrid();
  PairFit fit;
  const TrackResult possible = Smooth(PossibleSides(), parameters_.pair.wander, 0);
  const size_t impossible = verdicts_.found().size();
  const std::vector<TrackSide> sides = LikelySides();
  const double tolerance = parameters_.pair.likely_tolerance_ns;
  const TrackResult likely = Smooth(sides, parameters_.pair.wander, tolerance);
  // The calm pass rejects more constraints, as its limits are tighter; those are no contradictions.
  const TrackVerdicts verdicts = verdicts_;
  const TrackResult calm = Smooth(sides, QuietWander(likely), tolerance);
  verdicts_ = verdicts;
  for (size_t i = 0; i < verdicts_.found().size(); ++i) {
    const TrackContradiction& found = verdicts_.found()[i];
    fit.contradictions.push_back({found.constraint, found.amount_ns, i >= impossible});
  }
  // Each pass found some of them forwards and some backwards.
  std::sort(fit.contradictions.begin(), fit.contradictions.end(),
            [](const PairFit::Contradiction& a, const PairFit::Contradiction& b) {
              return a.constraint < b.constraint;
            });
  // The strip combines the three: bounds from the first two, the estimate from the calm one.
  std::vector<StripPoint> strip;
  for (size_t i = 0; i < grid_.size(); ++i) {
    strip.push_back({grid_[i], possible.points[i].offset, likely.points[i].offset,
                     calm.points[i].offset.middle()});
    if (possible.points[i].is_torn) fit.torn_ns.push_back(grid_[i]);
  }
  fit.rate = likely.rate;
  fit.knots = KnotsOf(strip, origin_, parameters_.pair.wander, parameters_.line_tolerance_ns);
  return fit;
}

}  // namespace

PairFit FitPair(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters) {
  if (constraints.empty()) return {};
  return PairFitter(constraints, parameters).Run();
}

}  // namespace neurontrace
