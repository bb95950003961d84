// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/pair_fit.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "aggregator/align/clock_strip.h"

namespace neurontrace {
namespace {

using Outcome = WanderFilter::Outcome;
using Contradiction = PairFit::Contradiction;

// What is left out, by constraint: neither pass uses it from then on.
struct Verdicts {
  std::vector<bool> out;         // altogether
  std::vector<bool> likely_out;  // its likely sides
  std::vector<Contradiction> found;
};

// Both filters, going one way through time.
struct Pass {
  WanderFilter possible;
  WanderFilter likely;
};

struct GridState {
  WanderPolygon possible;
  WanderPolygon likely;
};

class PairFitter {
 public:
  PairFitter(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters)
      : constraints_(constraints),
        parameters_(parameters),
        origin_(PairOrigin::Of(constraints.front())) {
    verdicts_.out.resize(constraints.size());
    verdicts_.likely_out.resize(constraints.size());
  }

  PairFit Run();

 private:
  Pass Begin(uint64_t x_ns) const;
  void Add(size_t i, Pass& pass);
  void MakeGrid();
  void AddReach();
  StripPoint Join(uint64_t x_ns, const GridState& forward, const GridState& backward);
  GridState StateOf(const Pass& pass, uint64_t x_ns) const;
  void ForwardPass();
  void BackwardPass();

  std::span<const ClockConstraint> constraints_;
  const PairFitParameters& parameters_;
  PairOrigin origin_;
  Verdicts verdicts_;
  std::vector<uint64_t> grid_;      // ascending
  std::vector<GridState> forward_;  // at each
  std::vector<StripPoint> strip_;   // at each
  PairFit fit_;
};

Pass PairFitter::Begin(uint64_t x_ns) const {
  const WanderFilter nothing = UnknownOffset(origin_, x_ns, parameters_.pair);
  return {nothing, nothing};
}

void PairFitter::Add(size_t i, Pass& pass) {
  if (verdicts_.out[i]) return;
  const ClockConstraint& constraint = constraints_[i];
  const Interval range = pass.possible.OffsetAt(origin_.Seconds(constraint.x_ns));
  if (AddPossible(origin_, constraint, pass.possible) == Outcome::kContradiction) {
    verdicts_.out[i] = true;
    double amount = 0;
    if (constraint.y_max_ns != ClockConstraint::kNoMax) {
      amount = origin_.Offset(constraint.x_ns, constraint.y_max_ns) - range.min;
    }
    if (constraint.y_min_ns != ClockConstraint::kNoMin) {
      const double above = origin_.Offset(constraint.x_ns, constraint.y_min_ns) - range.max;
      if (above > 0) amount = above;
    }
    verdicts_.found.push_back({i, amount, false});
    return;
  }
  if (verdicts_.likely_out[i]) return;
  if (AddLikely(origin_, constraint, parameters_.pair.likely_tolerance_ns, pass.likely) ==
      Outcome::kContradiction) {
    verdicts_.likely_out[i] = true;
    verdicts_.found.push_back({i, 0, true});
  }
}

// Times about a grid step apart, at constraints; in a gap without any, sixteen at most.
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

// On either side, times at distances that double.
void PairFitter::AddReach() {
  std::vector<uint64_t> before;
  const uint64_t first = grid_.front();
  const uint64_t last = grid_.back();
  const auto most_ns = static_cast<uint64_t>(parameters_.reach_s * 1e9);
  const auto fill = [most_ns](uint64_t room, auto add) {
    room = std::min(room, most_ns);
    for (uint64_t reach = 250'000'000; reach < room; reach *= 2) add(reach);
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

GridState PairFitter::StateOf(const Pass& pass, uint64_t x_ns) const {
  const double seconds = origin_.Seconds(x_ns);
  return {pass.possible.At(seconds), pass.likely.At(seconds)};
}

void PairFitter::ForwardPass() {
  Pass pass = Begin(constraints_.front().x_ns);
  size_t next = 0;
  forward_.reserve(grid_.size());
  for (const uint64_t x_ns : grid_) {
    while (next < constraints_.size() && constraints_[next].x_ns <= x_ns) Add(next++, pass);
    forward_.push_back(StateOf(pass, x_ns));
  }
  fit_.rate = pass.likely.At(origin_.Seconds(constraints_.back().x_ns)).Rate();
}

void PairFitter::BackwardPass() {
  Pass pass = Begin(constraints_.back().x_ns);
  size_t left = constraints_.size();
  strip_.resize(grid_.size());
  for (size_t g = grid_.size(); g-- > 0;) {
    while (left > 0 && constraints_[left - 1].x_ns >= grid_[g]) Add(--left, pass);
    strip_[g] = Join(grid_[g], forward_[g], StateOf(pass, grid_[g]));
  }
}

StripPoint PairFitter::Join(uint64_t x_ns, const GridState& forward, const GridState& backward) {
  bool torn = false;
  const auto join = [&torn](const WanderPolygon& one, const WanderPolygon& other) {
    const std::optional<Interval> common = one.CommonOffset(other);
    if (common.has_value()) return *common;
    torn = true;
    const Interval a = one.Offset();
    const Interval b = other.Offset();
    return Interval{std::min(a.min, b.min), std::max(a.max, b.max)};
  };
  StripPoint point{x_ns, join(forward.possible, backward.possible), {}};
  if (torn) fit_.torn_ns.push_back(x_ns);
  point.likely = join(forward.likely, backward.likely);
  return point;
}

PairFit PairFitter::Run() {
  MakeGrid();
  ForwardPass();
  BackwardPass();
  std::reverse(fit_.torn_ns.begin(), fit_.torn_ns.end());
  std::sort(
      verdicts_.found.begin(), verdicts_.found.end(),
      [](const Contradiction& a, const Contradiction& b) { return a.constraint < b.constraint; });
  fit_.contradictions = std::move(verdicts_.found);
  fit_.knots = KnotsOf(strip_, origin_, parameters_.pair.wander, parameters_.line_tolerance_ns);
  return std::move(fit_);
}

}  // namespace

PairFit FitPair(std::span<const ClockConstraint> constraints, const PairFitParameters& parameters) {
  if (constraints.empty()) return {};
  return PairFitter(constraints, parameters).Run();
}

}  // namespace neurontrace
