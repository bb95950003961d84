// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_solver.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "trace/limits.h"

namespace neurontrace {
namespace {

constexpr uint32_t kFromReference = UINT32_MAX;
constexpr uint32_t kFromBefore = UINT32_MAX - 1;
constexpr uint32_t kFromBehind = UINT32_MAX - 2;
// Any other parent: the place of the term at the other end, times 2, plus which cell.
static_assert(limits::kCausalStampsMax < (uint64_t{1} << 30));

constexpr int64_t kNone = std::numeric_limits<int64_t>::max() / 2;
// Loops of parents are looked for each time that so many rounds have not come to an end. In a
// system without a conflict few rounds are needed.
constexpr size_t kRoundsPerLoopSearch = 8;

// Least (of high) or greatest (of low) over the terms of a constraint, and the same without the
// clock that it is of: no clock constrains itself.
struct Extremes {
  int64_t best = kNone;
  int64_t second = kNone;
  uint32_t best_clock = UINT32_MAX;
  uint32_t best_at = 0;
  uint32_t second_at = 0;

  void Add(int64_t value, uint32_t clock, uint32_t at) {
    if (value < best) {
      second = best;
      second_at = best_at;
      best = value;
      best_clock = clock;
      best_at = at;
    } else if (value < second) {
      second = value;
      second_at = at;
    }
  }
};

}  // namespace

CausalSolver::CausalSolver(const CausalSystem& system, const CausalLimits& limits)
    : system_(system), limits_(limits), clocks_(system.clocks()), knots_(system.knots()) {}

void CausalSolver::Reset() {
  high_.value.resize(knots_ * clocks_);
  low_.value.resize(knots_ * clocks_);
  for (size_t knot = 0; knot < knots_; ++knot) {
    for (size_t clock = 0; clock < clocks_; ++clock) {
      high_.value[knot * clocks_ + clock] = limits_.Bound(knot, clock);
      low_.value[knot * clocks_ + clock] = -limits_.Bound(knot, clock);
    }
  }
  high_.parent.assign(knots_ * clocks_, kFromReference);
  low_.parent.assign(knots_ * clocks_, kFromReference);
  active_.assign(knots_, true);
  failed_.assign(knots_, false);
  cycles_.clear();
}

std::vector<CausalCycle> CausalSolver::Solve() {
  Reset();
  for (size_t round = 1; cycles_.size() < limits::kCausalConflictsPerRoundMax; ++round) {
    worked_.assign(knots_, false);
    for (size_t knot = 0; knot < knots_; ++knot) {
      VisitKnot(knot);
      if (knot + 1 < knots_) Spread(knot, knot + 1);
    }
    for (size_t knot = knots_; knot-- > 0;) {
      VisitKnot(knot);
      if (knot > 0) Spread(knot, knot - 1);
    }
    if (std::none_of(worked_.begin(), worked_.end(), [](bool worked) { return worked; })) break;
    if (round % kRoundsPerLoopSearch == 0) FindLoops();
  }
  return std::move(cycles_);
}

// Until nothing changes at this knot.
void CausalSolver::VisitKnot(size_t knot) {
  if (!active_[knot]) return;
  active_[knot] = false;
  if (failed_[knot]) return;
  worked_[knot] = true;
  for (size_t round = 1; RelaxKnot(knot, round % 2 == 0); ++round) {
    if (round % kRoundsPerLoopSearch != 0) continue;
    if (std::optional<CausalCycle> loop = LoopAt(knot)) {
      cycles_.push_back(*std::move(loop));
      failed_[knot] = true;
      return;
    }
  }
}

bool CausalSolver::RelaxKnot(size_t knot, bool backwards) {
  bool changed = false;
  crossed_.reset();
  for (uint32_t which = 0; which < system_.CellsAt(knot); ++which) {
    const CausalCell& cell = system_.Cell(system_.CellIndex(knot, which));
    for (size_t i = 0; i < cell.size(); ++i) {
      changed |= RelaxConstraint(cell, backwards ? cell.size() - 1 - i : i, knot, which);
    }
    if (crossed_) {
      Fail(knot, *crossed_);
      return false;
    }
  }
  return changed;
}

bool CausalSolver::RelaxConstraint(const CausalCell& cell, size_t constraint, size_t knot,
                                   uint32_t which) {
  bool changed = false;
  const int64_t* const high = high_.value.data() + knot * clocks_;
  const int64_t* const low = low_.value.data() + knot * clocks_;
  const CausalCell::Constraint& at = cell.constraints[constraint];
  const CausalCell::Constraint& end = cell.constraints[constraint + 1];
  Extremes effects;  // when the virtual node is at the latest
  for (uint32_t i = at.effect_begin; i < end.effect_begin; ++i) {
    const CausalCell::Term& term = cell.effects[i];
    effects.Add(term.time_ns + high[term.clock], term.clock, i);
  }
  Extremes causes;  // when it is at the earliest, negated
  for (uint32_t i = at.cause_begin; i < end.cause_begin; ++i) {
    const CausalCell::Term& term = cell.causes[i];
    const bool own = term.clock == effects.best_clock;
    const int64_t latest = (own ? effects.second : effects.best) - term.time_ns;
    if (latest < high[term.clock]) {
      const uint32_t by = own ? effects.second_at : effects.best_at;
      LowerHigh(knot, term.clock, latest, by * 2 + which);
      changed = true;
    }
    causes.Add(-(term.time_ns + low[term.clock]), term.clock, i);
  }
  for (uint32_t i = at.effect_begin; i < end.effect_begin; ++i) {
    const CausalCell::Term& term = cell.effects[i];
    const bool own = term.clock == causes.best_clock;
    const int64_t earliest = -(own ? causes.second : causes.best) - term.time_ns;
    if (earliest > low[term.clock]) {
      const uint32_t by = own ? causes.second_at : causes.best_at;
      RaiseLow(knot, term.clock, earliest, by * 2 + which);
      changed = true;
    }
  }
  return changed;
}

void CausalSolver::LowerHigh(size_t knot, uint32_t clock, int64_t value, uint32_t parent) {
  const size_t at = knot * clocks_ + clock;
  high_.value[at] = value;
  high_.parent[at] = parent;
  if (value < low_.value[at] && !crossed_) crossed_ = clock;
}

void CausalSolver::RaiseLow(size_t knot, uint32_t clock, int64_t value, uint32_t parent) {
  const size_t at = knot * clocks_ + clock;
  low_.value[at] = value;
  low_.parent[at] = parent;
  if (value > high_.value[at] && !crossed_) crossed_ = clock;
}

void CausalSolver::Spread(size_t from_knot, size_t to_knot) {
  if (failed_[from_knot] || failed_[to_knot]) return;
  crossed_.reset();
  const size_t epoch = std::min(from_knot, to_knot);
  const uint32_t parent = from_knot < to_knot ? kFromBefore : kFromBehind;
  const size_t from = from_knot * clocks_;
  const size_t to = to_knot * clocks_;
  bool changed = false;
  for (uint32_t clock = 0; clock < clocks_; ++clock) {
    const int64_t slope = limits_.Slope(epoch, clock);
    const int64_t high = high_.value[from + clock] + slope;
    const int64_t low = low_.value[from + clock] - slope;
    if (high < high_.value[to + clock]) {
      LowerHigh(to_knot, clock, high, parent);
      changed = true;
    }
    if (low > low_.value[to + clock]) {
      RaiseLow(to_knot, clock, low, parent);
      changed = true;
    }
  }
  if (changed) active_[to_knot] = true;
  if (crossed_) Fail(to_knot, *crossed_);
}

void CausalSolver::Fail(size_t knot, uint32_t clock) {
  failed_[knot] = true;
  active_[knot] = false;
  if (cycles_.size() < limits::kCausalConflictsPerRoundMax) {
    cycles_.push_back(CycleThrough(knot, clock));
  }
}

// The last step of the path that a value comes from; nullopt: there is none, the value is given.
std::optional<CausalStep> CausalSolver::StepTo(bool high, size_t knot, uint32_t clock) const {
  const uint32_t parent = (high ? high_ : low_).parent[knot * clocks_ + clock];
  CausalStep step{.to = clock, .knot = static_cast<uint32_t>(knot)};
  if (parent == kFromReference) {
    step.weight_ns = limits_.Bound(knot, clock);
    return step;
  }
  if (parent == kFromBefore || parent == kFromBehind) {
    step.kind = CausalStep::Kind::kSlope;
    step.from = clock;
    step.weight_ns = limits_.Slope(parent == kFromBefore ? knot - 1 : knot, clock);
    return step;
  }
  const CausalCell& cell = system_.Cell(system_.CellIndex(knot, parent & 1));
  const uint32_t there = parent >> 1;
  const auto begin_of = [high](const CausalCell::Constraint& constraint) {
    return high ? constraint.effect_begin : constraint.cause_begin;
  };
  const auto constraint = std::prev(std::upper_bound(
      cell.constraints.begin(), cell.constraints.end(), there,
      [&](uint32_t place, const CausalCell::Constraint& c) { return place < begin_of(c); }));
  const CausalCell::Term& other = high ? cell.effects[there] : cell.causes[there];
  const auto& terms = high ? cell.causes : cell.effects;
  const uint32_t begin = high ? constraint->cause_begin : constraint->effect_begin;
  const auto own = std::find_if(terms.begin() + begin, terms.end(),
                                [clock](const auto& term) { return term.clock == clock; });
  step.kind = CausalStep::Kind::kConstraint;
  step.from = other.clock;
  step.instance = constraint->instance;
  step.weight_ns = high ? other.time_ns - own->time_ns : own->time_ns - other.time_ns;
  return step;
}

bool CausalSolver::Walk(bool high, size_t knot, uint32_t clock,
                        std::vector<CausalStep>& steps) const {
  // Each second step of the walk is compared with a slower one (Floyd), which finds any loop
  // without a mark on each value.
  const auto next = [this, high](size_t& k, uint32_t& c) -> std::optional<CausalStep> {
    std::optional<CausalStep> step = StepTo(high, k, c);
    if (step->kind == CausalStep::Kind::kSlope) {
      const bool before = (high ? high_ : low_).parent[k * clocks_ + c] == kFromBefore;
      k = before ? k - 1 : k + 1;
    }
    c = step->from;
    return step;
  };
  size_t slow_knot = knot;
  uint32_t slow = clock;
  for (bool move_slow = false;; move_slow = !move_slow) {
    steps.push_back(*next(knot, clock));
    if (clock == CausalStep::kReference) return false;
    if (move_slow) (void)next(slow_knot, slow);
    if (knot == slow_knot && clock == slow) break;
  }
  steps.clear();
  do steps.push_back(*next(knot, clock));
  while (knot != slow_knot || clock != slow);
  return true;
}

// From the reference up to the greatest error, and from the least one, which is above it, back.
CausalCycle CausalSolver::CycleThrough(size_t knot, uint32_t clock) const {
  CausalCycle cycle;
  std::vector<CausalStep> above;
  std::vector<CausalStep> below;
  if (Walk(true, knot, clock, above)) {
    std::reverse(above.begin(), above.end());
    cycle.steps = std::move(above);
  } else if (Walk(false, knot, clock, below)) {
    for (CausalStep& step : below) std::swap(step.from, step.to);
    cycle.steps = std::move(below);
  } else {
    std::reverse(above.begin(), above.end());
    cycle.steps = std::move(above);
    for (CausalStep& step : below) {
      std::swap(step.from, step.to);
      cycle.steps.push_back(step);
    }
  }
  for (const CausalStep& step : cycle.steps) cycle.amount_ns -= step.weight_ns;
  return cycle;
}

// A loop among the parents of a knot's values goes down each time around.
std::optional<CausalCycle> CausalSolver::LoopAt(size_t knot) const {
  for (const bool high : {true, false}) {
    for (uint32_t clock = 0; clock < clocks_; ++clock) {
      if ((high ? high_ : low_).parent[knot * clocks_ + clock] == kFromReference) continue;
      std::vector<CausalStep> steps;
      if (Walk(high, knot, clock, steps)) return CycleThrough(knot, clock);
    }
  }
  return std::nullopt;
}

void CausalSolver::FindLoops() {
  for (size_t knot = 0; knot < knots_; ++knot) {
    if (!worked_[knot] || failed_[knot]) continue;
    if (std::optional<CausalCycle> loop = LoopAt(knot)) {
      failed_[knot] = true;
      cycles_.push_back(*std::move(loop));
    }
  }
}

}  // namespace neurontrace
