// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host/step_search.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace neurontrace {
namespace {

using Outcome = WanderFilter::Outcome;

// One pass of FindSteps. It runs a filter of the likely sides forwards and asks at each
// contradiction whether the next sides contradict as well. The cost is linear in the sides, plus
// one horizon per contradiction and twenty seconds of sides per change of the route.
class StepSearch {
 public:
  StepSearch(std::span<const HostSide> sides, const StepSearchParameters& parameters,
             std::vector<HostExchange>& exchanges, std::vector<ProbeRoute>& routes)
      : sides_(sides),
        parameters_(parameters),
        exchanges_(exchanges),
        routes_(routes),
        origin_(PairOrigin::Of(ConstraintOf(sides.front(), exchanges, routes))) {}

  std::vector<ClockStep> Run();

 private:
  HostExchange& ExchangeOf(size_t i) { return exchanges_[sides_[i].exchange]; }
  double SecondsOf(size_t i) const { return origin_.Seconds(sides_[i].x_ns); }
  // Returns a filter that knows nothing, to begin a pass at side i.
  WanderFilter Anything(size_t i) const {
    return UnknownOffset(origin_, sides_[i].x_ns, parameters_.pair.rate, parameters_.pair.wander);
  }
  // Adds the likely side of side i to a filter.
  Outcome Add(size_t i, WanderFilter& filter) const {
    return AddLikely(origin_, ConstraintOf(sides_[i], exchanges_, routes_),
                     parameters_.pair.likely_tolerance_ns, filter);
  }
  // Returns whether side i takes part: exchanges that may have taken either route are no evidence
  // of a step.
  bool IsUsed(size_t i) {
    const HostExchange& exchange = ExchangeOf(i);
    return !exchange.is_rejected && exchange.route != HostExchange::kNoRoute;
  }
  size_t EndOfHorizon(size_t i) const;
  bool IsStep(size_t i, WanderFilter before);
  WanderFilter GoBack(size_t from, size_t to);
  size_t LastBefore(size_t first_after, WanderFilter after, size_t least);
  void LearnShift(size_t i, const WanderFilter& before);

  std::span<const HostSide> sides_;
  const StepSearchParameters& parameters_;
  std::vector<HostExchange>& exchanges_;
  std::vector<ProbeRoute>& routes_;
  PairOrigin origin_;
};

// Returns one past the last side that IsStep looks at from side i.
size_t StepSearch::EndOfHorizon(size_t i) const {
  const size_t most = std::min(sides_.size(), i + parameters_.horizon_sides_max);
  size_t end = std::min(most, i + parameters_.horizon_sides);
  while (end < most && SecondsOf(end) - SecondsOf(i) < parameters_.horizon_s) ++end;
  return end;
}

// Returns whether the following sides see a clock other than `before`, or only side i does.
bool StepSearch::IsStep(size_t i, WanderFilter before) {
  const bool is_most = sides_[i].is_most;
  const size_t end = EndOfHorizon(i);
  size_t contradictions = 0;
  size_t of = 0;
  for (size_t j = i; j < end; ++j) {
    if (!IsUsed(j)) continue;
    const bool contradicts = Add(j, before) == Outcome::kContradiction;
    if (sides_[j].is_most != is_most) continue;
    ++of;
    contradictions += contradicts ? 1 : 0;
  }
  if (contradictions >= parameters_.contradictions) return true;
  // The evidence ends too soon for more of them.
  return end == sides_.size() && contradictions >= 2 && contradictions == of;
}

// Returns what is known at side `to` from the sides after it, up to `from`.
WanderFilter StepSearch::GoBack(size_t from, size_t to) {
  WanderFilter filter = Anything(from);
  for (size_t j = from + 1; j-- > to;) {
    if (IsUsed(j)) Add(j, filter);
  }
  return filter;
}

// Returns the last side before `first_after` that contradicts the clock after the step. The search
// stops at side `least` and 10 s before.
size_t StepSearch::LastBefore(size_t first_after, WanderFilter after, size_t least) {
  constexpr double kFarSeconds = 10;
  size_t i = first_after;
  while (i > least && SecondsOf(first_after) - SecondsOf(i - 1) < kFarSeconds) {
    --i;
    if (!IsUsed(i)) continue;
    WanderFilter trial = after;
    if (Add(i, trial) == Outcome::kContradiction) return i;
  }
  return i;
}

// The clock continues while the route changes. The shift is the difference between where the new
// route's sides, taken as equal in both directions, put the clock and where the old route's do.
void StepSearch::LearnShift(size_t i, const WanderFilter& before) {
  constexpr double kLongSeconds = 20;
  constexpr double kSameRouteNs = 3'000;
  const uint32_t number = ExchangeOf(i).route;
  ProbeRoute& route = routes_[number];
  route.shift_is_known = true;
  size_t end = i;
  while (end + 1 < sides_.size() && SecondsOf(end + 1) - SecondsOf(i) < kLongSeconds) ++end;
  WanderFilter after = Anything(end);
  for (size_t j = end + 1; j-- > i;) {
    if (IsUsed(j) && ExchangeOf(j).route == number) Add(j, after);
  }
  const double seconds = SecondsOf(i);
  route.shift_ns = after.OffsetAt(seconds).middle() - before.OffsetAt(seconds).middle();
  // Back on a route that was known before: the earlier estimate has accumulated fewer errors.
  for (const ProbeRoute& known : routes_) {
    if (&known == &route || !known.shift_is_known || known.path != route.path) continue;
    if (std::abs(known.round_trip_ns - route.round_trip_ns) < kSameRouteNs &&
        std::abs(known.shift_ns - route.shift_ns) < kSameRouteNs) {
      route.shift_ns = known.shift_ns;
      return;
    }
  }
}

// After a step the filter starts again from nothing: what was known before is of another clock.
std::vector<ClockStep> StepSearch::Run() {
  std::vector<ClockStep> steps;
  std::optional<WanderFilter> filter;
  size_t begin = 0;  // first side of the clock since the last step
  for (size_t i = 0; i < sides_.size(); ++i) {
    if (!IsUsed(i)) continue;
    ProbeRoute& route = routes_[ExchangeOf(i).route];
    if (!route.shift_is_known) {
      // A route that begins a stretch has nothing to be compared with: its shift counts as 0.
      if (filter.has_value()) {
        LearnShift(i, *filter);
      } else {
        route.shift_is_known = true;
      }
    }
    if (!filter.has_value()) filter = Anything(i);
    if (Add(i, *filter) != Outcome::kContradiction) continue;
    if (!IsStep(i, *filter)) {
      ExchangeOf(i).is_rejected = true;
      continue;
    }
    // A step is measured where both clocks are known: the one before from the past, the one after
    // from the horizon.
    const WanderFilter after = GoBack(EndOfHorizon(i) - 1, i);
    const double seconds = SecondsOf(i);
    steps.push_back({LastBefore(i, after, begin), i,
                     after.OffsetAt(seconds).middle() - filter->OffsetAt(seconds).middle()});
    begin = i;
    filter = Anything(i);
    Add(i, *filter);
  }
  return steps;
}

}  // namespace

std::vector<ClockStep> FindSteps(std::span<const HostSide> sides,
                                 const StepSearchParameters& parameters,
                                 std::vector<HostExchange>& exchanges,
                                 std::vector<ProbeRoute>& routes) {
  if (sides.empty()) return {};
  return StepSearch(sides, parameters, exchanges, routes).Run();
}

}  // namespace neurontrace
